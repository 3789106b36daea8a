-- Fixed window: count an attempt in the window that the caller believes in, if
-- this node's clock agrees, and tell the count and the time left.
--
-- KEYS[1]  the counter of one user, one limit and one window
-- ARGV[1]  end of that window, in ms of Unix time
-- ARGV[2]  length of the window, in ms
-- ARGV[3]  grace: how long the counter outlives its window, in ms
-- ARGV[4]  cost of the attempt; 0 looks without counting, and writes nothing
--
-- Reply, three integers:
--   1, count, left   the attempts of this window, this one included, and the ms
--                    until its end
--   0, now, 0        it is another window by this node's clock, which says now, in
--                    ms of Unix time. Nothing was written.
--
-- Above 2^53 not every integer is a number of Lua's, so a count is given as at most
-- that, which is above every rate.

local last = tonumber(ARGV[1])
local period = tonumber(ARGV[2])
local grace = tonumber(ARGV[3])
local cost = tonumber(ARGV[4])
local most = 9007199254740992
if not last or not period or not grace or not cost or #KEYS ~= 1 or
    period < 1 or grace < 1 or cost < 0 or cost >= most then
  return redis.error_reply('ERR fixed window: bad arguments')
end

-- A counter expires one grace after its window's end, so its TTL tells whether the
-- window is still open, and for how long. That is cheaper than TIME, which is asked
-- only for a counter that is new, past its end, or without a sensible TTL.
local ttl = redis.call('PTTL', KEYS[1])
local left = ttl - grace
if left <= 0 or left > period then
  local time = redis.call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  left = last - now
  if left <= 0 or left > period then
    return { 0, now, 0 }
  end
end

local count
if cost == 0 then
  local stored = redis.call('GET', KEYS[1])
  count = stored and tonumber(stored) or 0
  if stored and not tonumber(stored) then
    return redis.error_reply('ERR fixed window: the counter holds no integer')
  end
else
  count = redis.pcall('INCRBY', KEYS[1], ARGV[4])
  if type(count) == 'table' then
    -- Near 2^63 the counter stops, and the attempt is one over any limit.
    if not string.find(count.err, 'overflow', 1, true) then
      return count
    end
    count = most
  end
  -- Steady traffic must not extend a counter's life: the expiry is set when the
  -- counter is new (-2), and again only where an operator took it away (-1) or
  -- put it later than any window of this length could end.
  if ttl < 0 or ttl > period + grace then
    redis.call('PEXPIREAT', KEYS[1], last + grace)
  end
end
return { 1, math.min(count, most), left }
