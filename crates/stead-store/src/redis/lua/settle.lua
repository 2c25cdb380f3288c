-- queue, id, attempt, then: ack | nack DELAY_MS REASON | extend HIDE_MS
local queue, id, act = ARGV[2], ARGV[3], ARGV[5]
local job, waiting = prefix .. 'w:' .. id .. ':' .. queue, prefix .. 'q:' .. queue
local found = redis.call('HMGET', job, 'a', 'x', 's')

if found[1] ~= ARGV[4] or found[3] ~= 'claimed' then
  -- A first try that was carried out has left it like this.
  local made = again and ((act == 'ack' and not found[1])
    or (act == 'nack' and found[1] == ARGV[4] and found[3] ~= 'claimed'))
  return {'ok', made and '1' or '0'}
end

if act == 'ack' then
  redis.call('ZREM', waiting, id)
  redis.call('DEL', job)
elseif act == 'extend' then
  redis.call('ZADD', waiting, text(now_ms() + tonumber(ARGV[6])), id)
elseif tonumber(found[1]) >= tonumber(found[2]) then
  redis.call('ZREM', waiting, id)
  redis.call('HSET', job, 's', 'dead', 'r', ARGV[7])
  redis.call('ZADD', prefix .. 'x:' .. queue, '0', id)
else
  redis.call('ZADD', waiting, text(now_ms() + tonumber(ARGV[6])), id)
  redis.call('HSET', job, 's', 'free')
end
return {'ok', '1'}
