-- name, token. The token stays, for the next one to be greater.
local key = prefix .. 'l:' .. ARGV[2]
if redis.call('HGET', key, 't') == ARGV[3] then redis.call('HDEL', key, 'h', 'u') end
return {'ok'}
