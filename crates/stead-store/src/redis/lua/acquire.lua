-- name, holder, ttl in ms, token that may be taken over ('' for none)
local key, now = prefix .. 'l:' .. ARGV[2], now_ms()
local found = redis.call('HMGET', key, 't', 'h', 'u')
local token, holder, till = found[1], found[2], tonumber(found[3] or '0')

if holder == ARGV[3] then
  redis.call('HSET', key, 'u', text(now + tonumber(ARGV[4])))
  return {'ok', 'ours', token}
end
if holder and now < till and token ~= ARGV[5] then
  return {'ok', 'held', token, holder, text(till - now)}
end
-- At least the time of day: a server that came back without its last writes gives no token twice.
token = text(math.max(tonumber(token or '0') + 1, now))
redis.call('HSET', key, 't', token, 'h', ARGV[3], 'u', text(now + tonumber(ARGV[4])))
return {'ok', 'ours', token}
