-- Fixed window: count an attempt in the window that the caller believes in, if
-- this node's clock agrees, and tell the count and the time left.
--
-- KEYS[1]  the counter of one user, one limit and one window, whose number it ends
--          with: ":NUMBER", or ":NUMBER@PERIOD"
-- ARGV[1]  "PERIOD GRACE": the length of the window, and how long the counter
--          outlives it, in ms
-- ARGV[2]  low: the window is the right one without asking the clock if the counter's
--          TTL, in ms, is one of the 1000 above low. At least the grace; at most
--          1000 less than period and grace, or above all TTLs.
-- ARGV[3]  cost of the attempt, 1 where it is left out; 0 looks without counting, and
--          writes nothing
--
-- Reply, one integer:
--   count * 1024 + TTL - low   the attempts of this window, this one included, and,
--                              one grace above it, the ms until the window's end:
--                              if the TTL is of those above low, and the count of
--                              those within 2^42
-- or three:
--   1, count, left   the attempts of this window, this one included, and the ms
--                    until its end
--   0, now, 0        it is another window by this node's clock, which says now, in
--                    ms of Unix time. Nothing was written.
--
-- Above 2^53 not every integer is a number of Lua's, so a count is given as at most
-- that, which is above every rate.
--
-- Nearly every run ends at the first return after INCRBY. What only other runs need is
-- not on the way to it: a function made, an argument more or one read, an array to reply
-- with, each is a hundredth of such a run and more, an argument several.

local keys, args = KEYS, ARGV
local key, most = keys[1], 9007199254740992
if #keys ~= 1 then
  return redis.error_reply('ERR fixed window: bad arguments')
end
local cost, by = 1, args[3]
if by then
  cost = by + 0 -- a cheaper tonumber, and an error for what is none
  if not (cost >= 0 and cost < most and cost % 1 == 0) then
    return redis.error_reply('ERR fixed window: bad arguments')
  end
end

-- A counter expires one grace after its window's end, so its TTL tells whether the
-- window is still open, and for how long. That is cheaper than TIME, which is asked
-- only for a counter that is new, past its end, or whose TTL does not fit: another
-- grace, or an operator's EXPIRE, made it, if it says a time that is a second or more
-- off what the caller believes.
local ttl = redis.call('PTTL', key)
local above, left, expiry = ttl - args[2], nil, nil
local lives = above > 0 and above <= 1000 and above < ttl -- as long as it should, and low is above 0
if not lives or cost == 0 then
  local period, grace = string.match(args[1], '^(%d+) (%d+)$')
  if not (period and period + 0 >= 1 and grace + 0 >= 1 and args[2] + 0 >= 1) then
    return redis.error_reply('ERR fixed window: bad arguments')
  end
  period, grace = period + 0, grace + 0
  left = ttl - grace
  local last = (string.match(key, ':(%-?%d+)@?%d*$') + 1) * period
  if not lives then
    local time = redis.call('TIME')
    local now = time[1] * 1000 + math.floor(time[2] / 1000)
    left = last - now
    if not (left > 0 and left <= period) then
      return { 0, now, 0 }
    end
    lives = ttl >= 0 and ttl <= period + grace
  end
  expiry = last + grace
end

if lives and cost > 0 then
  -- Steady traffic must not extend a counter's life, so its expiry is let be.
  local count = redis.pcall('INCRBY', key, by or '1')
  if type(count) == 'table' then
    -- Near 2^63 the counter stops, and the attempt is one over any limit.
    if not string.find(count.err, 'overflow', 1, true) then
      return count
    end
    count = most
  elseif not left and count < 4398046511104 and count > -4398046511104 then
    return count * 1024 + above
  end
  return { 1, math.min(count, most), left or ttl - string.match(args[1], '%d+$') }
end

-- integer reads a counter as INCRBY does; tonumber alone would take '1e3' and 'nan'.
local function integer(text)
  return string.find(text, '^-?%d+$') and tonumber(text)
end

-- The counter is to be looked at only; or it is new (-2), or an operator took its expiry
-- away (-1) or put it later than any window of this length could end.
local stored = ttl ~= -2 and redis.call('GET', key) or '0'
local count = integer(stored)
if not count then
  return redis.error_reply('ERR fixed window: the counter holds no integer')
end
if cost > 0 then
  count = count + cost
  if count < most then
    stored = string.format('%.0f', count)
  end -- else it is above every rate, and stays as it is
  -- Count and expiry are one command: of two, the second may be refused, by an ACL
  -- say, after the first has counted, and then the caller hears that nothing was, and
  -- the counter stays for ever.
  redis.call('SET', key, stored, 'PXAT', expiry)
end
return { 1, math.min(count, most), left }
