-- the journals between lowest and highest (as ZRANGEBYLEX has them), at most limit
local names = redis.call('ZRANGEBYLEX', prefix .. 'n', ARGV[2], ARGV[3], 'LIMIT', '0', ARGV[4])
local answer = {'ok'}
for _, name in ipairs(names) do
  local head = redis.call('HMGET', prefix .. 'h:' .. name, 's', 'b', 't')
  local last = redis.call('LINDEX', prefix .. 'j:' .. name, -1)
  if not head[1] or not last then return {'corrupt', 'the journal ' .. name .. ' has lost lines'} end
  answer[#answer + 1] = name
  answer[#answer + 1] = head[1]
  answer[#answer + 1] = head[2]
  answer[#answer + 1] = head[3]
  answer[#answer + 1] = last
end
return answer
