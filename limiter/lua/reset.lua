-- Reset: forget the attempts of the window that the caller believes in, if this
-- node's clock agrees.
--
-- KEYS[1]  the counter of one user, one limit and one window
-- ARGV[1]  end of that window, in ms of Unix time
-- ARGV[2]  length of the window, in ms
--
-- Reply, three integers:
--   1, deleted, left   1 if there was a counter, else 0, and the ms until the
--                      window's end
--   0, now, 0          it is another window by this node's clock, which says now, in
--                      ms of Unix time. Nothing was written.

local last = tonumber(ARGV[1])
local period = tonumber(ARGV[2])
if not last or not period or #KEYS ~= 1 or period < 1 then
  return redis.error_reply('ERR reset: bad arguments')
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local left = last - now
if left <= 0 or left > period then
  return { 0, now, 0 }
end
return { 1, redis.call('DEL', KEYS[1]), left }
