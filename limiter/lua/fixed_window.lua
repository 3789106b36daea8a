-- Fixed window: count an attempt in the window that the caller believes in, if
-- this node's clock agrees, and tell the count and the time left.
--
-- KEYS[1]  the counter of one user, one limit and one window
-- ARGV[1]  end of that window, in ms of Unix time
-- ARGV[2]  length of the window, in ms
-- ARGV[3]  grace: how long the counter outlives its window, in ms
-- ARGV[4]  cost of the attempt; 0 looks without counting, and writes nothing
-- ARGV[5]  what the caller believes this node's clock to say, in ms of Unix time
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
local guess = tonumber(ARGV[5])
local most = 9007199254740992
if not guess or not last or not period or not grace or not cost or #KEYS ~= 1 or
    period < 1 or grace < 1 or cost < 0 or cost >= most or cost % 1 ~= 0 then
  return redis.error_reply('ERR fixed window: bad arguments')
end

-- A counter expires one grace after its window's end, so its TTL tells whether the
-- window is still open, and for how long. That is cheaper than TIME, which is asked
-- only for a counter that is new, past its end, or whose TTL does not fit: another
-- grace, or an operator's EXPIRE, made it, if it says a time that is a second or more
-- off what the caller believes.
local ttl = redis.call('PTTL', KEYS[1])
local left = ttl - grace
if left <= 0 or left > period or math.abs(last - left - guess) > 1000 then
  local time = redis.call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  left = last - now
  if left <= 0 or left > period then
    return { 0, now, 0 }
  end
end

-- integer reads a counter as INCRBY does; tonumber alone would take '1e3' and 'nan'.
local function integer(text)
  return string.find(text, '^-?%d+$') and tonumber(text)
end

local count
if cost == 0 then
  count = integer(redis.call('GET', KEYS[1]) or '0')
  if not count then
    return redis.error_reply('ERR fixed window: the counter holds no integer')
  end
elseif ttl >= 0 and ttl <= period + grace then
  -- Steady traffic must not extend a counter's life, so its expiry is let be.
  count = redis.pcall('INCRBY', KEYS[1], ARGV[4])
  if type(count) == 'table' then
    -- Near 2^63 the counter stops, and the attempt is one over any limit.
    if not string.find(count.err, 'overflow', 1, true) then
      return count
    end
    count = most
  end
else
  -- The counter is new (-2), or an operator took its expiry away (-1) or put it later
  -- than any window of this length could end. Count and expiry are one command: of
  -- two, the second may be refused, by an ACL say, after the first has counted, and
  -- then the caller hears that nothing was, and the counter stays for ever.
  local stored = ttl == -2 and '0' or redis.call('GET', KEYS[1])
  count = integer(stored)
  if not count then
    return redis.error_reply('ERR fixed window: the counter holds no integer')
  end
  count = count + cost
  if count < most then
    stored = string.format('%.0f', count)
  end -- else it is above every rate, and stays as it is
  redis.call('SET', KEYS[1], stored, 'PXAT', last + grace)
end
return { 1, math.min(count, most), left }
