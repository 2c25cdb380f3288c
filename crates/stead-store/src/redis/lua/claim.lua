-- queue, a name for this request, hide in ms
local queue, now = ARGV[2], now_ms()
local request, waiting = prefix .. 'r:' .. ARGV[3], prefix .. 'q:' .. queue

local function job(id) return prefix .. 'w:' .. id .. ':' .. queue end

-- What the lost answer gave us is ours, unless it took so long that it was given to someone else.
local given = again and redis.call('GET', request)
if given then
  local found = redis.call('HMGET', job(given), 'a', 'p', 's', 'n')
  if found[3] == 'claimed' and found[4] == ARGV[3] then return {'ok', given, found[2], found[1]} end
end

while true do
  local id = redis.call('ZRANGEBYSCORE', waiting, '-inf', text(now), 'LIMIT', '0', '1')[1]
  if not id then return {'ok'} end
  local found = redis.call('HMGET', job(id), 'a', 'x', 'p')
  if not found[1] then return {'corrupt', 'the job ' .. id .. ' of the queue ' .. queue .. ' is not there'} end
  local attempt = tonumber(found[1])
  if attempt > 0 and attempt >= tonumber(found[2]) then
    redis.call('ZREM', waiting, id)
    redis.call('HSET', job(id), 's', 'dead', 'r', 'the worker did not answer in time')
    redis.call('ZADD', prefix .. 'x:' .. queue, '0', id)
  else
    attempt = text(attempt + 1)
    redis.call('HSET', job(id), 'a', attempt, 's', 'claimed', 'n', ARGV[3])
    redis.call('ZADD', waiting, text(now + tonumber(ARGV[4])), id)
    redis.call('SET', request, id, 'EX', '300')
    return {'ok', id, found[3], attempt}
  end
end
