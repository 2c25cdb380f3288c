-- queue, lowest (as ZRANGEBYLEX has it), limit
local ids = redis.call('ZRANGEBYLEX', prefix .. 'x:' .. ARGV[2], ARGV[3], '+', 'LIMIT', '0', ARGV[4])
local answer = {'ok'}
for _, id in ipairs(ids) do
  local found = redis.call('HMGET', prefix .. 'w:' .. id .. ':' .. ARGV[2], 'p', 'a', 'r')
  if not found[1] then return {'corrupt', 'the dead job ' .. id .. ' is not there'} end
  answer[#answer + 1] = id
  answer[#answer + 1] = found[1]
  answer[#answer + 1] = found[2]
  answer[#answer + 1] = found[3]
end
return answer
