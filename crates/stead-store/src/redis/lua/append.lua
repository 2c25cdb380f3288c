-- journal, after, name and token of the fence, lines
local FIRST, PIECE = 6, 500
local head, list = prefix .. 'h:' .. ARGV[2], prefix .. 'j:' .. ARGV[2]
local count = #ARGV - FIRST + 1

if fenced(ARGV[4], ARGV[5]) then return {'fenced'} end

local found = redis.call('HMGET', head, 's', 'b')
local seq, bytes = tonumber(found[1] or '0'), tonumber(found[2] or '0')
if redis.call('LLEN', list) ~= seq then
  return {'corrupt', 'the journal ' .. ARGV[2] .. ' has lost lines'}
end

local function ends_in_these()
  if seq ~= tonumber(ARGV[3]) + count then return false end
  for i = 1, count do
    if redis.call('LINDEX', list, i - count - 1) ~= ARGV[FIRST + i - 1] then return false end
  end
  return true
end

if text(seq) ~= ARGV[3] then
  if again and count > 0 and ends_in_these() then return {'ok'} end
  return {'conflict', ARGV[2]}
end
if count == 0 then return {'ok'} end

for i = FIRST, #ARGV, PIECE do
  redis.call('RPUSH', list, unpack(ARGV, i, math.min(i + PIECE - 1, #ARGV)))
end
for i = FIRST, #ARGV do bytes = bytes + #ARGV[i] + 1 end
redis.call('HSET', head, 's', text(seq + count), 'b', text(bytes), 't', text(now_ms()))
redis.call('ZADD', prefix .. 'n', '0', ARGV[2])
return {'ok'}
