-- queue, a name for this request, payload, delay in ms, most attempts, dedup key if there is one
local queue = ARGV[2]
local request = prefix .. 'r:' .. ARGV[3]
local made = again and redis.call('GET', request)
if made then return {'ok', 'new', made} end

local dedup = ARGV[7] and prefix .. 'u:' .. #queue .. ':' .. queue .. ':' .. ARGV[7]
local known = dedup and redis.call('GET', dedup)
if known then return {'ok', 'known', known} end

-- At least the time of day: a server that came back without its last writes gives no id twice.
local count = prefix .. 'c:' .. queue
local now = now_us()
local number = math.max(tonumber(redis.call('GET', count) or '0') + 1, now)
local id = string.format('%017.0f', number)
redis.call('SET', count, text(number))
redis.call('HSET', prefix .. 'w:' .. id .. ':' .. queue, 'p', ARGV[4], 'a', '0', 'x', ARGV[6], 's', 'free')
redis.call('ZADD', prefix .. 'q:' .. queue, text(math.floor(now / 1000) + tonumber(ARGV[5])), id)
redis.call('SET', request, id, 'EX', '300')
if dedup then redis.call('SET', dedup, id, 'EX', '86400') end
return {'ok', 'new', id}
