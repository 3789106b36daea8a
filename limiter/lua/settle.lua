-- Settle: add attempts, which were denied without asking, to the counter by which they
-- were denied, whether its window lasts or not. A counter that is gone, or holds less than
-- it did then, was reset or has expired: then they are forgotten, as it was.
--
-- KEYS[1]  the counter of one user, one limit and one window
-- ARGV[1]  cost of the attempts
-- ARGV[2]  what the counter held when they were denied
--
-- Reply, one integer: 1 if they were added, 0 if they were forgotten.

local cost, floor = ARGV[1] + 0, ARGV[2] + 0
if not (cost >= 0 and cost < 9007199254740992 and cost % 1 == 0 and floor and #KEYS == 1) then
  return redis.error_reply('ERR settle: bad arguments')
end
local count = redis.call('GET', KEYS[1])
if not count or count + 0 < floor then
  return 0
end
redis.call('INCRBY', KEYS[1], ARGV[1])
return 1
