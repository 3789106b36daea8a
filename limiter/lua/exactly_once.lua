-- Fixed window, exactly once: as fixed_window.lua, save that a call may be sent again
-- when its reply is lost, and counts once all the same.
--
-- Each process numbers its calls, and has at most one under way for a user. The counter
-- is a hash. Beside the count it holds, for each process, the number of the newest call
-- that was counted for it, and what that was told. A call that is sent again is told the
-- same again. An older one sat somewhere, in the socket of a node that was paused say,
-- while it was sent again and the next one was: it counts nothing, and nobody waits for
-- its reply.
--
-- KEYS[1]  the counter of one user, one limit and one window, whose number it ends
--          with: ":NUMBER", or ":NUMBER@PERIOD"
-- ARGV[1]  cost of the attempts; 0 looks without counting, and writes nothing; -1 sets
--          the count to 0, and leaves the processes' fields
-- ARGV[2]  what the counter's TTL is, in ms, if the caller's guess of this node's clock
--          is right
-- ARGV[3]  length of the window, in ms
-- ARGV[4]  grace: how long the counter outlives its window, in ms
-- ARGV[5]  the process, a number above 0
-- ARGV[6]  the number of the call, above those of the process's earlier ones. Sent again, a
--          call has all its arguments again.
--
-- Fields of the hash:
--   n        the count
--   PROCESS  "NUMBER COUNT LEFT": its newest call, the count after it, and the ms that
--            were left of the window then
--
-- Reply, three integers:
--   1, count, left   the attempts of this window, these included, and the ms until its
--                    end. A call that was counted before is told what it was told then.
--   0, now, 0        it is another window by this node's clock, which says now, in ms of
--                    Unix time, or the guess was made too long ago. No sending of this
--                    call was counted, and none will be.
--   0, now, 1        the same, but another sending of this call may have been counted, or
--                    may be yet.
--   0, 0, 1          a later call of the process was counted before. Whether this one
--                    was is not known.
-- Where the first is 0, nothing was written.

-- Processes come and go, so a field that was not used for the horizon is removed. A call
-- that was counted and arrives once more after that would count again. So it must arrive
-- within the bound of its guess, or is refused: what it left the first time, at
-- most one bound before the guess, is there for one horizon, which is longer than two bounds.
local bound, horizon = 300000, 3600000
local most = 9007199254740992

local key, args = KEYS[1], ARGV
local cost, want, period, grace, number = args[1] + 0, args[2] + 0, args[3] + 0, args[4] + 0, args[6] + 0
if not (cost >= -1 and cost < most and cost % 1 == 0 and period >= 1 and grace >= 1 and
    args[5] + 0 >= 1 and (number >= 1 or cost == 0) and number < most and number % 1 == 0 and #KEYS == 1) then
  return redis.error_reply('ERR exactly once: bad arguments')
end

local ttl = redis.call('PTTL', key)
local fields = redis.call('HMGET', key, 'n', args[5])
local stored, mark = fields[1], fields[2]

if mark and cost ~= 0 then
  local newest = string.match(mark, '^%d+') + 0
  if number < newest then
    return { 0, 0, 1 }
  end
  if number == newest then
    local count, left = string.match(mark, '^%d+ (%-?%d+) (%d+)$')
    -- Written once more, since a WAIT behind this sending speaks of what its own connection wrote.
    redis.call('HSET', key, args[5], mark)
    return { 1, count + 0, left + 0 }
  end
end

-- The TTL tells the time, as in fixed_window.lua, and TIME is asked where it does not
-- fit the guess.
local left, late, expiry = ttl - grace, want - ttl, nil
if not (left > 0 and left <= period and late <= 1000 and late >= -1000) then
  local last = (string.match(key, ':(%-?%d+)@?%d*$') + 1) * period
  local time = redis.call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  left = last - now
  late = now - (last + grace - want) -- ms since the guess
  if left > period or not (late >= -bound) then
    return { 0, now, 1 } -- too early: another sending may yet be in time
  end
  if left <= 0 or late > bound and cost ~= 0 then
    -- Too late, and so is whatever comes after this. What was in time has left its field,
    -- unless that was removed since, or the whole counter was.
    local sure = late <= horizon - bound and (ttl ~= -2 or left > -grace)
    return { 0, now, sure and 0 or 1 }
  end
  if ttl < 0 or ttl > period + grace then
    expiry = last + grace -- it has none, or one later than any window of this length could have
  end
end

local count = ttl ~= -2 and tonumber(stored) or ttl == -2 and 0
if not (count and count % 1 == 0) then
  return redis.error_reply('ERR exactly once: the counter holds no integer')
end
if cost <= 0 then
  count = cost == 0 and math.min(count, most) or 0
else
  count = count + cost
end
if cost == 0 then
  return { 1, count, left }
end
local text = string.format('%.0f', count)
if count < most then
  stored = text
else -- it is above every rate, and the counter stays as it is
  count, text = most, '9007199254740992'
end

-- Fields of processes that are gone. A new one is the occasion.
if not mark and left < period - horizon then
  local all, gone = redis.call('HGETALL', key), { key }
  for i = 1, #all, 2 do
    local before = string.match(all[i + 1], '^%d+ %-?%d+ (%d+)$')
    if before and before - left > horizon and #gone <= 100 then
      gone[#gone + 1] = all[i]
    end
  end
  if gone[2] then
    redis.call('HDEL', unpack(gone))
  end
end

-- An error means that nothing was counted. So what has to follow the count is tried
-- before it, where it does nothing: an ACL may refuse any command, and memory may be full.
if ttl == -2 then
  redis.call('SET', key, '', 'XX') -- not where there is no key; it wants memory all the same
end
if expiry then
  redis.call('PEXPIREAT', key, expiry)
end
redis.call('HSET', key, 'n', stored, args[5], args[6] .. ' ' .. text .. ' ' .. left)
if ttl == -2 then
  redis.call('PEXPIREAT', key, expiry)
end
return { 1, count, left }
