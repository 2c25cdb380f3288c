-- name and token of the fence ('' and '' if there is none), then the changes:
--   put KEY EXPECTED VERSION META BODY | delete KEY EXPECTED | check KEY EXPECTED | move FROM TO VERSION
-- Expected is '*' for anything, '-' for nothing, or a version.
local LENGTH = {put = 6, delete = 3, check = 3, move = 4}

local function version(key) return redis.call('HGET', prefix .. 'd:' .. key, 'v') end

local function holds(expected, found)
  if expected == '*' then return true end
  if expected == '-' then return not found end
  return found == expected
end

-- For the change at ARGV[i]: the key that is not as it must be before, and whether all is as it is after.
local function look(i)
  local kind, key, found = ARGV[i], ARGV[i + 1], version(ARGV[i + 1])
  if kind == 'move' then
    local at_target = version(ARGV[i + 2])
    local is_after = not found and at_target == ARGV[i + 3]
    if found ~= ARGV[i + 3] then return key, is_after end
    if at_target then return ARGV[i + 2], is_after end
    return nil, is_after
  end
  local wrong = nil
  if not holds(ARGV[i + 2], found) then wrong = key end
  if kind == 'put' then return wrong, found == ARGV[i + 3] end
  if kind == 'delete' then return wrong, not found end
  return wrong, wrong == nil
end

if ARGV[3] ~= '' and fenced(ARGV[2], ARGV[3]) then return {'fenced'} end

local wrong, made = nil, true
local i = 4
while ARGV[i] do
  local key, is_after = look(i)
  wrong = wrong or key
  made = made and is_after
  i = i + LENGTH[ARGV[i]]
end
if wrong then
  if again and made then return {'ok'} end
  return {'conflict', wrong}
end

i = 4
while ARGV[i] do
  local kind, key = ARGV[i], ARGV[i + 1]
  if kind == 'put' then
    redis.call('HSET', prefix .. 'd:' .. key, 'v', ARGV[i + 3], 'm', ARGV[i + 4], 'b', ARGV[i + 5])
    redis.call('ZADD', prefix .. 'k', '0', key)
  elseif kind == 'delete' then
    redis.call('DEL', prefix .. 'd:' .. key)
    redis.call('ZREM', prefix .. 'k', key)
  elseif kind == 'move' then
    local to = ARGV[i + 2]
    redis.call('RENAME', prefix .. 'd:' .. key, prefix .. 'd:' .. to)
    redis.call('ZREM', prefix .. 'k', key)
    redis.call('ZADD', prefix .. 'k', '0', to)
  end
  i = i + LENGTH[kind]
end
return {'ok'}
