-- journal, from (0 is the first), most bytes
local PIECE = 16
local list, from, most = prefix .. 'j:' .. ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local answer, bytes = {'ok'}, 0
while true do
  local piece = redis.call('LRANGE', list, text(from), text(from + PIECE - 1))
  for _, line in ipairs(piece) do
    bytes = bytes + #line + 1
    if #answer > 1 and bytes > most then return answer end
    answer[#answer + 1] = line
  end
  if #piece < PIECE then return answer end
  from = from + PIECE
end
