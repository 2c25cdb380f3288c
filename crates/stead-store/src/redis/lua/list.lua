-- lowest, highest (as ZRANGEBYLEX has them), limit
local keys = redis.call('ZRANGEBYLEX', prefix .. 'k', ARGV[2], ARGV[3], 'LIMIT', '0', ARGV[4])
local answer = {'ok'}
for _, key in ipairs(keys) do
  local found = redis.call('HMGET', prefix .. 'd:' .. key, 'v', 'm')
  if not found[1] then return {'corrupt', 'the document ' .. key .. ' is listed but is not there'} end
  answer[#answer + 1] = key
  answer[#answer + 1] = found[1]
  answer[#answer + 1] = found[2]
end
return answer
