-- journal, name and token of the fence
if fenced(ARGV[3], ARGV[4]) then return {'fenced'} end
redis.call('DEL', prefix .. 'h:' .. ARGV[2], prefix .. 'j:' .. ARGV[2])
redis.call('ZREM', prefix .. 'n', ARGV[2])
return {'ok'}
