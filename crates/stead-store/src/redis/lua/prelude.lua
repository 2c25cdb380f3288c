-- Before every script. KEYS[1] is the prefix of all keys of one space; they share its hash tag, so that
-- those made from it here are on the same node of a cluster. ARGV[1] is '1' when an earlier try may have
-- been carried out although its answer was lost. Every answer is a list of strings that begins with what
-- came of it.
local prefix = KEYS[1]
local again = ARGV[1] == '1'

local function now_us()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000000 + tonumber(time[2])
end

local function now_ms() return math.floor(now_us() / 1000) end

-- Numbers of Lua are doubles: exact up to 2^53, which is far beyond any time in microseconds.
local function text(number) return string.format('%.0f', number) end

local function fenced(name, token) return redis.call('HGET', prefix .. 'l:' .. name, 't') ~= token end
