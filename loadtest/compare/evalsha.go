package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/slotlimit/slotlimit/keys"
)

// countScript is the shortest script that counts in a window: the window's number is in
// the key, and the counter expires one period after it was made.
const countScript = `local count = redis.call('INCR', KEYS[1])
if count == 1 then
  redis.call('PEXPIRE', KEYS[1], ARGV[1])
end
return count
`

// contenderEvalsha is what a service would write by hand.
var contenderEvalsha = contender{
	name:  bare,
	about: "INCR and PEXPIRE in a script, by EVALSHA through a ClusterClient, one call a decision",
	open: func(ctx context.Context, t *target, q quota) (rival, error) {
		s, err := loadCount(ctx, t, q)
		if err != nil {
			return nil, err
		}
		return single(func(ctx context.Context, user string) (bool, error) {
			count, err := s.client.EvalSha(ctx, s.sha, []string{countKey(bare, user, s.window())}, s.milli).Int64()
			return count <= s.rate, err
		}), nil
	},
	keys:   countKeys(bare),
	counts: true,
}

// contenderPipeline is the same script with a hundred decisions in a pipeline, which somebody has
// to have at hand at one time: no service can do that, so it is a ceiling and no limiter.
var contenderPipeline = contender{
	name:       ceiling,
	about:      "the ceiling: the same script, in pipelines of 100 through a ClusterClient, which 4 goroutines fill whatever the row says",
	batch:      100,
	goroutines: 4,
	open: func(ctx context.Context, t *target, q quota) (rival, error) {
		s, err := loadCount(ctx, t, q)
		if err != nil {
			return nil, err
		}
		return pipelined{s}, nil
	},
	keys:   countKeys(ceiling),
	counts: true,
}

// A counting is the script, ready to be called.
type counting struct {
	quota
	client *redis.ClusterClient
	sha    string
	milli  int64 // the period in ms
}

func loadCount(ctx context.Context, t *target, q quota) (counting, error) {
	sha, err := t.others.ScriptLoad(ctx, countScript).Result()
	if err != nil {
		return counting{}, fmt.Errorf("load the counting script: %w", err)
	}
	return counting{quota: q, client: t.others, sha: sha, milli: q.period.Milliseconds()}, nil
}

func (s counting) window() int64 { return keys.WindowNumber(time.Now().UnixMilli(), s.period) }

type pipelined struct{ counting }

func (p pipelined) decide(ctx context.Context, users []string, verdicts []verdict) {
	pipe := p.client.Pipeline()
	cmds := make([]*redis.Cmd, len(users))
	window := p.window()
	for i, user := range users {
		cmds[i] = pipe.EvalSha(ctx, p.sha, []string{countKey(ceiling, user, window)}, p.milli)
	}
	_, _ = pipe.Exec(ctx) // each command has its own error
	for i, cmd := range cmds {
		count, err := cmd.Int64()
		verdicts[i] = verdict{count <= p.rate, err}
	}
}

// countKey is the counter of a user and a window: "evalsha:{alice}:29139841".
func countKey(prefix, user string, window int64) string {
	return prefix + ":{" + user + "}:" + strconv.FormatInt(window, 10)
}

func countKeys(prefix string) func(string, quota, []int64) []string {
	return func(user string, _ quota, windows []int64) []string {
		names := make([]string, len(windows))
		for i, w := range windows {
			names[i] = countKey(prefix, user, w)
		}
		return names
	}
}
