-- key
local found = redis.call('HMGET', prefix .. 'd:' .. ARGV[2], 'v', 'm', 'b')
if not found[1] then return {'ok'} end
return {'ok', found[1], found[2], found[3]}
