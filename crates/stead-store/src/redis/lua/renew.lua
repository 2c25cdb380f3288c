-- name, token, ttl in ms
local key = prefix .. 'l:' .. ARGV[2]
local found = redis.call('HMGET', key, 't', 'h')
if found[1] ~= ARGV[3] or not found[2] then return {'ok', '0'} end
redis.call('HSET', key, 'u', text(now_ms() + tonumber(ARGV[4])))
return {'ok', '1'}
