package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/slotlimit/slotlimit/cluster"
	"github.com/slotlimit/slotlimit/cluster/clustertest"
	"github.com/slotlimit/slotlimit/keys"
)

// A ledger holds what the callers of one key were told.
type ledger struct {
	acknowledged, ambiguous, unavailable, highest int64
}

func (l *ledger) enter(t *testing.T, reply []int64, err error) {
	switch {
	case err == nil:
		l.acknowledged++
		l.highest = max(l.highest, reply[0])
	case errors.Is(err, cluster.ErrAmbiguous):
		l.ambiguous++
	case errors.Is(err, cluster.ErrUnavailable):
		l.unavailable++
	default:
		t.Errorf("neither of the two: %v", err)
	}
}

// Whatever happens to the nodes, what is stored for a key is at least what was acknowledged,
// and at most that and what was ambiguous.
func TestLedgerUnderFaults(t *testing.T) {
	c := clustertest.Start(t)
	client := open(t, cluster.Config{Addrs: c.Addrs(), Timeout: 250 * time.Millisecond})
	const users, callers = 12, 24
	length := time.After(3 * time.Second)
	if testing.Short() {
		length = time.After(time.Second)
	}
	over := make(chan struct{})
	var mu sync.Mutex
	books := make([]ledger, users)
	var all sync.WaitGroup
	for caller := range callers {
		all.Go(func() {
			random := rand.New(rand.NewPCG(uint64(caller), 0))
			for {
				select {
				case <-over:
					return
				default:
				}
				book(t, client, random, &mu, books)
			}
		})
	}
	all.Go(func() {
		random := rand.New(rand.NewPCG(99, 0))
		for {
			select {
			case <-over:
				return
			default:
			}
			harm(t, c, random)
		}
	})
	<-length
	close(over)
	all.Wait()
	var sum ledger
	for user, l := range books {
		reply, err := client.Run(t.Context(), cluster.Call{Script: incrScript, Key: fmt.Sprintf("{%d}", user), Args: []int64{0}})
		for err != nil { // a reload of the picture may be under way
			reply, err = client.Run(t.Context(), cluster.Call{Script: incrScript, Key: fmt.Sprintf("{%d}", user), Args: []int64{0}})
		}
		if stored := reply[0]; stored < l.acknowledged || stored > l.acknowledged+l.ambiguous || stored < l.highest {
			t.Errorf("user %d: stored %d, callers were told %+v", user, stored, l)
		}
		sum.acknowledged += l.acknowledged
		sum.ambiguous += l.ambiguous
		sum.unavailable += l.unavailable
	}
	if min(sum.acknowledged, sum.ambiguous, sum.unavailable) == 0 {
		t.Errorf("a test of too little: %+v", sum)
	}
	t.Logf("%+v", sum)
}

// book makes a call, or some at once, for chance users, and enters what it is told.
func book(t *testing.T, client *cluster.Client, random *rand.Rand, mu *sync.Mutex, books []ledger) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(1+random.IntN(100))*time.Millisecond)
	defer cancel()
	if random.IntN(4) == 0 {
		time.AfterFunc(time.Duration(random.IntN(3000))*time.Microsecond, cancel)
	}
	users := make([]int, 1)
	if random.IntN(3) == 0 {
		users = make([]int, 1+random.IntN(20))
	}
	calls := make([]cluster.Call, len(users))
	for i := range users {
		users[i] = random.IntN(len(books))
		calls[i] = incr("{" + strconv.Itoa(users[i]) + "}")
	}
	var outcomes []cluster.Outcome
	if len(calls) == 1 {
		reply, err := client.Run(ctx, calls[0])
		outcomes = []cluster.Outcome{{Reply: reply, Err: err}}
	} else {
		outcomes = client.RunAll(ctx, calls)
	}
	mu.Lock()
	defer mu.Unlock()
	for i, o := range outcomes {
		books[users[i]].enter(t, o.Reply, o.Err)
	}
}

// harm does something to the cluster that it survives.
func harm(t *testing.T, c *clustertest.Cluster, random *rand.Rand) {
	node := random.IntN(clustertest.Nodes)
	var err error
	switch random.IntN(6) {
	case 0:
		how := clustertest.Cut
		if random.IntN(2) == 0 {
			how = clustertest.Silence
		}
		c.LoseReplies(clustertest.On(node, "EVALSHA"), 1+random.IntN(3), how)
	case 1:
		words := []string{"TRYAGAIN no", "LOADING no", "NOSCRIPT no", "OOM no", "READONLY no"}
		c.Fail(clustertest.On(node, "EVALSHA"), 1+random.IntN(20), words[random.IntN(len(words))])
	case 2:
		err = c.Hang(node)
		time.Sleep(time.Duration(random.IntN(60)) * time.Millisecond) // how long it hangs
		err = errors.Join(err, c.Resume(node))
	case 3:
		err = c.Failover((c.Primary(random.IntN(clustertest.Shards)) + clustertest.Shards) % clustertest.Nodes)
	case 4:
		slot := keys.Slot("{" + strconv.Itoa(random.IntN(12)) + "}")
		err = c.MoveSlot(slot, c.Primary(random.IntN(clustertest.Shards)))
	case 5:
		c.FlushScripts(node)
	}
	if err != nil && !errors.Is(err, clustertest.ErrSlot) {
		t.Errorf("harm: %v", err)
	}
	time.Sleep(time.Duration(random.IntN(10)) * time.Millisecond) // between two faults
}
