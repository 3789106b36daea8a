package clustertest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/slotlimit/slotlimit/cluster/clustertest"
	"github.com/slotlimit/slotlimit/cluster/servertest"
)

// An exchange is one command to one node and the reply to it. One table of them
// holds for clustertest and for six redis-server processes, so clustertest cannot
// drift from what it stands for.
//
// on names the connection: the node's number, and letters for further connections to
// it. In send, words are parted by spaces, a word in single quotes is one, and idN,
// portN and digestN stand for a node's ID, its port and digests[N]. In
// want, nodeN stands for a node's address, "…" for any text.
type exchange struct{ on, send, want string }

// Keys a and d live on node 2, b and f on node 0, c and k on node 1.
var exchanges = []struct {
	name  string
	steps []exchange
}{
	{"moved", []exchange{
		{"0", "SET a 1", "-MOVED 15495 node2"},
		{"1", "GET a", "-MOVED 15495 node2"},
		{"2", "SET a 1", "+OK"},
		{"2", "GET a", `"1"`},
		{"0", "set b 2", "+OK"},
		{"0", "MGET {b}1 b {b}2", `[nil "2" nil]`},
		{"1", "DEL {b}1 b", "-MOVED 3300 node0"},
		{"0", "EXISTS b b {b}x", ":2"},
	}},
	{"crossslot", []exchange{
		{"0", "MSET b 1 a 1", "-CROSSSLOT Keys in request don't hash to the same slot"},
		{"0", "MGET a b", "-CROSSSLOT Keys in request don't hash to the same slot"},
		{"1", "EVAL 'return 1' 2 a b", "-CROSSSLOT Keys in request don't hash to the same slot"},
		{"0", "SUNIONSTORE b f b", "-CROSSSLOT Keys in request don't hash to the same slot"},
		{"0", "ZUNIONSTORE b 2 b f", "-CROSSSLOT Keys in request don't hash to the same slot"},
		{"0", "RENAME b f", "-CROSSSLOT Keys in request don't hash to the same slot"},
	}},
	{"replica", []exchange{
		{"2", "SET a 7", "+OK"},
		{"2", "WAIT 1 5000", ":1"},
		{"5", "GET a", "-MOVED 15495 node2"},
		{"5", "EVALSHA digest0 1 a", "-MOVED 15495 node2"},
		{"5", "READONLY", "+OK"},
		{"5", "GET a", `"7"`},
		{"5", "SET a 8", "-MOVED 15495 node2"},
		{"5", "GET b", "-MOVED 3300 node0"},
		{"5", "EVALSHA digest0 1 a", "-NOSCRIPT No matching script. Please use EVAL."},
		{"5", "EVAL 'return redis.call(\"GET\", KEYS[1])' 1 a", `"7"`},
		{"5", "EVAL_RO 'return redis.call(\"GET\", KEYS[1])' 1 a", `"7"`},
		{"5", "EVAL 'return redis.call(\"INCR\", KEYS[1])' 1 a", "-READONLY You can't write against a read only replica.…"},
		{"5", "FLUSHALL", "-READONLY You can't write against a read only replica."},
		{"5", "WAIT 0 0", "-ERR WAIT cannot be used with replica instances.…"},
		{"5", "READWRITE", "+OK"},
		{"5", "GET a", "-MOVED 15495 node2"},
	}},
	{"script cache", []exchange{
		{"1", "EVALSHA digest0 1 k", "-NOSCRIPT No matching script. Please use EVAL."},
		{"1", "SCRIPT EXISTS digest0", "[:0]"},
		{"1", "EVAL 'return 41' 1 k", ":41"},
		{"1", "SCRIPT EXISTS digest0 digest1", "[:1 :0]"},
		{"1", "EVALSHA digest0 1 k", ":41"},
		{"0", "EVALSHA digest0 1 b", "-NOSCRIPT No matching script. Please use EVAL."},
		{"0", "EVALSHA digest0 1 k", "-MOVED 7629 node1"},
		{"0", "SCRIPT LOAD 'return 42'", `"digest1"`},
		{"0", "EVALSHA digest1 0", ":42"},
		{"0", "EVALSHA short 0", "-NOSCRIPT No matching script. Please use EVAL."},
		{"1", "SCRIPT FLUSH", "+OK"},
		{"1", "EVALSHA digest0 1 k", "-NOSCRIPT No matching script. Please use EVAL."},
		{"1", "SCRIPT FLUSH NOW", "-ERR SCRIPT FLUSH only support SYNC|ASYNC option"},
		{"1", "SCRIPT FOO", "-ERR unknown subcommand 'FOO'. Try SCRIPT HELP."},
		{"1", "SCRIPT LOAD 'return +'", "-ERR Error compiling script (new function): …"},
		{"1", "EVAL 'return +' 0", "-ERR Error compiling script (new function): …"},
		{"1", "EVAL 'return 1' x", "-ERR value is not an integer or out of range"},
		{"1", "EVAL 'return 1' 2 k", "-ERR Number of keys can't be greater than number of args"},
		{"1", "EVAL 'return 1' -1", "-ERR Number of keys can't be negative"},
		{"1", "EVAL 'return 1'", "-ERR wrong number of arguments for 'eval' command"},
	}},
	{"script replies", []exchange{
		{"1", "EVAL 'return {1,2,{3,\"a\"},false,nil,4}' 0", `[:1 :2 [:3 "a"] nil]`},
		{"1", "EVAL 'return 1.9' 0", ":1"},
		{"1", "EVAL 'return -1.9' 0", ":-1"},
		{"1", "EVAL 'return true' 0", ":1"},
		{"1", "EVAL 'return false' 0", "nil"},
		{"1", "EVAL 'return' 0", "nil"},
		{"1", "EVAL 'return 2^53' 0", ":9007199254740992"},
		{"1", "EVAL 'return redis.status_reply(\"FINE\")' 0", "+FINE"},
		{"1", "EVAL 'return redis.error_reply(\"MY err\")' 0", "-MY err"},
		{"1", "EVAL 'return redis.error_reply(\"MY\")' 0", "-ERR MY"},
		{"1", "EVAL 'return {err=\"A b\"}' 0", "-A b"},
		{"1", "EVAL 'return {double=3.5}' 0", `"3.5"`},
		{"1", "EVAL 'return redis.call(\"SET\", KEYS[1], \"v\")' 1 k", "+OK"},
		{"1", "EVAL 'return tostring(redis.call(\"GET\", KEYS[1]))' 1 {k}none", `"false"`},
		{"1", "EVAL 'return redis.call(\"ECHO\", 0.1)' 0", `"0.10000000000000001"`},
		{"1", "EVAL 'return redis.call(\"ECHO\", 1e20)' 0", `"1e+20"`},
		{"1", "EVAL 'return redis.call(\"ECHO\", 2^53)' 0", `"9007199254740992"`},
		{"1", "EVAL 'return #redis.call(\"HGETALL\", KEYS[1])' 1 {k}none", ":0"},
		{"1", "EVAL 'return redis.sha1hex(\"\")' 0", `"da39a3ee5e6b4b0d3255bfef95601890afd80709"`},
		{"1", "EVAL 'return cjson.encode({a=1})' 0", `"{\"a\":1}"`},
		{"1", "EVAL 'return {KEYS[1], ARGV[1], #KEYS, #ARGV}' 1 k x", `["k" "x" :1 :1]`},
		{"1", "EVAL 'return KEYS[0]' 1 k", "nil"},
		{"1", "EVAL 'return redis.REDIS_VERSION_NUM > 0x060000' 0", ":1"},
	}},
	{"script errors", []exchange{
		{"1", "EVAL 'return redis.call(\"GET\")' 0", "-ERR Wrong number of args calling Redis command from script script: …, on @user_script:1."},
		{"1", "EVAL 'return redis.pcall(\"GET\")' 0", "-ERR Wrong number of args calling Redis command from script"},
		{"1", "EVAL 'return redis.call(\"FOO\")' 0", "-ERR Unknown Redis command called from script script: …, on @user_script:1."},
		{"1", "EVAL 'return redis.call()' 0", "-ERR Please specify at least one argument for this redis lib call script: …, on @user_script:1."},
		{"1", "EVAL 'return redis.call({})' 0", "-ERR Lua redis lib command arguments must be strings or integers script: …, on @user_script:1."},
		{"1", "EVAL 'return x' 0", "-ERR user_script:1: Script attempted to access nonexistent global variable 'x' script: …, on @user_script:1."},
		{"1", "EVAL 'x = 1' 0", "-ERR user_script:1: Attempt to modify a readonly table script: …, on @user_script:1."},
		{"1", "EVAL 'KEYS = nil' 0", "-ERR user_script:1: Attempt to modify a readonly table script: …, on @user_script:1."},
		{"1", "EVAL 'redis.x = 1' 0", "-ERR user_script:1: Attempt to modify a readonly table script: …, on @user_script:1."},
		{"1", "EVAL 'print(1)' 0", "-ERR user_script:1: Script attempted to access nonexistent global variable 'print' script: …, on @user_script:1."},
		{"1", "EVAL 'return os.time()' 0", "-ERR user_script:1: Script attempted to access nonexistent global variable 'os' script: …, on @user_script:1."},
		{"1", "EVAL 'error(\"boom\")' 0", "-ERR user_script:1: boom script: …, on @user_script:1."},
		{"1", "EVAL 'error({err=\"E x\"})' 0", "-E x script: …"},
		{"1", "EVAL 'local t = redis.pcall(\"INCR\", KEYS[1], 1) return t.err' 1 k", `"ERR Wrong number of args calling Redis command from script"`},
		{"1", "EVAL 'return redis.call(\"INCRBY\", KEYS[1], 1.5)' 1 k", "-ERR value is not an integer or out of range script: …, on @user_script:1."},
		{"1", "EVAL 'return redis.call(\"EVAL\", \"return 1\", 0)' 0", "-ERR This Redis command is not allowed from script script: …, on @user_script:1."},
		{"1", "EVAL 'return redis.call(\"WAIT\", 0, 0)' 0", "-ERR This Redis command is not allowed from script script: …, on @user_script:1."},
		{"1", "EVAL 'return redis.call(\"GET\", \"a\")' 1 k", "-ERR Script attempted to access a non local key in a cluster node script: …, on @user_script:1."},
		{"1", "EVAL 'return redis.call(\"GET\", \"a\")' 0", "-ERR Script attempted to access a non local key in a cluster node script: …, on @user_script:1."},
		{"1", "EVAL 'return redis.call(\"MGET\", \"k\", \"c\")' 1 k", "-ERR Script attempted to access a non local key in a cluster node script: …, on @user_script:1."},
		{"1", "EVAL 'return redis.call(\"GET\", \"{k}other\")' 1 k", "nil"},
		{"1", "EVAL_RO 'return redis.call(\"DEL\", KEYS[1])' 1 k", "-ERR Write commands are not allowed from read-only scripts. script: …, on @user_script:1."},
		{"1", "EVAL '#!lua flags=no-writes\nreturn redis.call(\"DEL\", KEYS[1])' 1 k", "-ERR Write commands are not allowed from read-only scripts. script: …, on @user_script:2."},
		{"1", "EVAL '\n\nreturn redis.call(\"GET\")' 0", "-ERR Wrong number of args calling Redis command from script script: …, on @user_script:3."},
		{"1", "EVAL 'return redis.call(\"HGET\", KEYS[1], \"f\")' 1 k", "-WRONGTYPE Operation against a key holding the wrong kind of value script: …, on @user_script:1."},
	}},
	{"expiry", []exchange{
		{"0", "TTL f", ":-2"},
		{"0", "SET f 1", "+OK"},
		{"0", "PTTL f", ":-1"},
		{"0", "PEXPIRETIME f", ":-1"},
		{"0", "PEXPIREAT f 4102444800123", ":1"},
		{"0", "PEXPIRETIME f", ":4102444800123"},
		{"0", "EXPIRETIME f", ":4102444800"},
		{"0", "INCR f", ":2"},
		{"0", "PEXPIRETIME f", ":4102444800123"},
		{"0", "PEXPIREAT f 1 GT", ":0"},
		{"0", "PEXPIREAT f 4102444800124 NX", ":0"},
		{"0", "EXPIREAT f 4102444801", ":1"},
		{"0", "PEXPIRETIME f", ":4102444801000"},
		{"0", "PERSIST f", ":1"},
		{"0", "TTL f", ":-1"},
		{"0", "EXPIRE f 100", ":1"},
		{"0", "TTL f", ":100"},
		{"0", "SET f 1 KEEPTTL", "+OK"},
		{"0", "TTL f", ":100"},
		{"0", "SET f 1", "+OK"},
		{"0", "TTL f", ":-1"},
		{"0", "SET f 1 EX 100", "+OK"},
		{"0", "TTL f", ":100"},
		{"0", "SETEX f 50 2", "+OK"},
		{"0", "TTL f", ":50"},
		{"0", "PSETEX f 60000 2", "+OK"},
		{"0", "TTL f", ":60"},
		{"0", "GETEX f EX 70", `"2"`},
		{"0", "TTL f", ":70"},
		{"0", "RENAME f {f}g", "+OK"},
		{"0", "TTL {f}g", ":70"},
		{"0", "PEXPIRE {f}g -1", ":1"},
		{"0", "GET {f}g", "nil"},
		{"0", "SET f 1", "+OK"},
		{"0", "PEXPIREAT f 1000", ":1"},
		{"0", "DBSIZE", ":1"}, // b of the first group
		{"0", "PEXPIRE f 1000", ":0"},
		{"0", "SET f 1 EX 0", "-ERR invalid expire time in 'set' command"},
		{"0", "SET f 1 PX 5 EX 5", "-ERR syntax error"},
		{"0", "SET f 1 PX x", "-ERR value is not an integer or out of range"},
		{"0", "SETEX f 0 1", "-ERR invalid expire time in 'setex' command"},
		{"0", "EXPIRE f x", "-ERR value is not an integer or out of range"},
		{"0", "EXPIRE b 9223372036854775807", "-ERR invalid expire time in 'expire' command"},
	}},
	{"transaction", []exchange{
		{"0", "MULTI", "+OK"},
		{"0", "SET b 1", "+QUEUED"},
		{"0", "INCR b", "+QUEUED"},
		{"0", "EXEC", "[+OK :2]"},
		{"0", "MULTI", "+OK"},
		{"0", "SET b 1", "+QUEUED"},
		{"0", "SET a 1", "-MOVED 15495 node2"},
		{"0", "EXEC", "-EXECABORT Transaction discarded because of previous errors."},
		{"0", "GET b", `"2"`},
		{"0", "MULTI", "+OK"},
		{"0", "SET b 1", "+QUEUED"},
		{"0", "SET f 1", "+QUEUED"},
		{"0", "EXEC", "-CROSSSLOT Keys in request don't hash to the same slot"},
		{"0", "EXEC", "-ERR EXEC without MULTI"},
		{"0", "MULTI", "+OK"},
		{"0", "MULTI", "-ERR MULTI calls can not be nested"},
		{"0", "DISCARD", "+OK"},
		{"0", "DISCARD", "-ERR DISCARD without MULTI"},
		{"0", "WATCH b", "+OK"},
		{"0b", "SET b 5", "+OK"},
		{"0", "MULTI", "+OK"},
		{"0", "SET b 6", "+QUEUED"},
		{"0", "EXEC", "nil"},
		{"0", "WATCH b", "+OK"},
		{"0", "UNWATCH", "+OK"},
		{"0b", "SET b 5", "+OK"},
		{"0", "MULTI", "+OK"},
		{"0", "GET b", "+QUEUED"},
		{"0", "EXEC", `["5"]`},
	}},
	{"connection", []exchange{
		{"0", "PING", "+PONG"},
		{"0", "PING x", `"x"`},
		{"0", "ECHO x", `"x"`},
		{"0", "SELECT 0", "+OK"},
		{"0", "SELECT 1", "-ERR SELECT is not allowed in cluster mode"},
		{"0", "CLIENT SETNAME me", "+OK"},
		{"0", "CLIENT GETNAME", `"me"`},
		{"0", "CLIENT SETINFO LIB-NAME x", "-ERR unknown subcommand 'SETINFO'. Try CLIENT HELP."},
		{"0", "HELLO 4", "-NOPROTO unsupported protocol version"},
		{"0c", "HELLO 2", `["server" "redis" "version" "…" "proto" :2 "id" :… "mode" "cluster" "role" "master" "modules" []]`},
		{"0c", "HELLO 3", `{"server" "redis" "version" "…" "proto" :3 "id" :… "mode" "cluster" "role" "master" "modules" []}`},
		{"0c", "GET {b}none", "nil"},
		{"3", "HELLO 2", `[…"role" "replica"…]`},
		{"0", "FOO a b", "-ERR unknown command 'FOO', with args beginning with: 'a' 'b' "},
		{"0", "GET", "-ERR wrong number of arguments for 'get' command"},
		{"0", "TIME", `["…" "…"]`},
		{"0", "MOVE b 1", "-ERR MOVE is not allowed in cluster mode"},
		{"0", "COPY b {b}2 DB 1", "-ERR Copying to another database is not allowed in cluster mode"},
	}},
	{"topology", []exchange{
		{"0", "CLUSTER MYID", `"id0"`},
		{"5", "CLUSTER MYID", `"id5"`},
		{"3", "CLUSTER KEYSLOT {user}:1", ":5474"},
		{"3", "CLUSTER KEYSLOT {}a}", ":4370"},
		{"3", "CLUSTER KEYSLOT x", ":16287"},
		{"0", "CLUSTER COUNTKEYSINSLOT 3300", ":1"},
		{"0", "CLUSTER GETKEYSINSLOT 3300 10", `["b"]`},
		{"0", "CLUSTER COUNTKEYSINSLOT 16384", "-ERR Invalid slot"},
		{"0", "CLUSTER COUNTKEYSINSLOT x", "-ERR value is not an integer or out of range"},
		{"0", "CLUSTER FOO", "-ERR unknown subcommand 'FOO'. Try CLUSTER HELP."},
		{"0", "CLUSTER", "-ERR wrong number of arguments for 'cluster' command"},
		{"4", "CLUSTER SLOTS", `[[:0 :5460 ["127.0.0.1" :port0 "id0" []] ["127.0.0.1" :port3 "id3" []]] ` +
			`[:5461 :1092… ["127.0.0.1" :port1 "id1" []] ["127.0.0.1" :port4 "id4" []]] ` +
			`[:1092… :16383 ["127.0.0.1" :port2 "id2" []] ["127.0.0.1" :port5 "id5" []]]]`},
		{"0", "CLUSTER NODES", `"…id0 127.0.0.1:port0@… myself,master - 0 … connected 0-5460\n…"`},
		{"0", "CLUSTER NODES", `"…id3 127.0.0.1:port3@… slave id0 … connected\n…"`},
		{"0", "CLUSTER INFO", `"cluster_state:ok\r\ncluster_slots_assigned:16384\r\ncluster_slots_ok:16384\r\n` +
			`cluster_slots_pfail:0\r\ncluster_slots_fail:0\r\ncluster_known_nodes:6\r\ncluster_size:3\r\n…"`},
		{"0", "INFO replication", `"# Replication\r\nrole:master\r\nconnected_slaves:1\r\nslave0:ip=127.0.0.1,port=port3,state=online,…"`},
		{"3", "INFO replication", `"# Replication\r\nrole:slave\r\nmaster_host:127.0.0.1\r\nmaster_port:port0\r\nmaster_link_status:up\r\n…"`},
		{"0", "INFO cluster", `"# Cluster\r\ncluster_enabled:1\r\n"`},
		{"0", "INFO server", `"# Server\r\nredis_version:…redis_mode:cluster…run_id:…tcp_port:port0…"`},
		{"0", "ROLE", `["master" :… [["127.0.0.1" "port3" "…"]]]`},
		{"3", "ROLE", `["slave" "127.0.0.1" :port0 "connected" :…]`},
		{"0", "CLUSTER FAILOVER", "-ERR You should send CLUSTER FAILOVER to a replica"},
	}},
	{"moving slot", []exchange{
		{"0", "MSET {b}1 x {b}2 y", "+OK"},
		{"1", "CLUSTER SETSLOT 3300 IMPORTING id0", "+OK"},
		{"0", "CLUSTER SETSLOT 3300 MIGRATING id1", "+OK"},
		{"1", "CLUSTER SETSLOT 3300 MIGRATING id0", "-ERR I'm not the owner of hash slot 3300"},
		{"0", "GET {b}1", `"x"`},
		{"0", "GET {b}new", "-ASK 3300 node1"},
		{"0", "SET {b}new 1", "-ASK 3300 node1"},
		{"1", "GET {b}new", "-MOVED 3300 node0"},
		{"1", "ASKING", "+OK"},
		{"1", "SET {b}new 1", "+OK"},
		{"1", "GET {b}new", "-MOVED 3300 node0"}, // ASKING was for one command
		{"0", "MIGRATE 127.0.0.1 port1 {b}1 0 5000", "+OK"},
		{"0", "MIGRATE 127.0.0.1 port1 {b}1 0 5000", "+NOKEY"},
		{"0", "GET {b}1", "-ASK 3300 node1"},
		{"0", "MGET {b}1 {b}2", "-TRYAGAIN Multiple keys request during rehashing of slot"},
		{"0", "EVAL 'return 1' 2 {b}1 {b}2", "-TRYAGAIN Multiple keys request during rehashing of slot"},
		{"0", "EVAL 'return 1' 1 {b}2", ":1"},
		{"0", "EVAL 'return 1' 1 {b}1", "-ASK 3300 node1"},
		{"0", "EVAL 'return redis.call(\"GET\", \"{b}1\")' 1 {b}2", "-ERR Script attempted to access a non local key in a cluster node script: …, on @user_script:1."},
		{"0", "MGET {b}1 {b}new", "-ASK 3300 node1"},
		{"1", "MGET {b}1 {b}new", "-MOVED 3300 node0"},
		{"1", "ASKING", "+OK"},
		{"1", "MGET {b}1 {b}new", `["x" "1"]`},
		{"1", "ASKING", "+OK"},
		{"1", "MGET {b}1 {b}2", "-TRYAGAIN Multiple keys request during rehashing of slot"},
		{"1", "ASKING", "+OK"},
		{"1", "EVAL 'return redis.call(\"GET\", KEYS[1])' 1 {b}1", `"x"`},
		{"1", "ASKING", "+OK"},
		{"1", "MULTI", "+OK"},
		{"1", "GET {b}1", "+QUEUED"},
		{"1", "GET {b}new", "+QUEUED"},
		{"1", "EXEC", `["x" "1"]`},
		{"0", "CLUSTER SETSLOT 3300 NODE id1", "-ERR Can't assign hashslot 3300 to a different node while I still hold keys for this hash slot."},
		{"0", "MIGRATE 127.0.0.1 port1  0 5000 KEYS b {b}2", "+OK"},
		{"1", "CLUSTER SETSLOT 3300 NODE id1", "+OK"},
		{"0", "CLUSTER SETSLOT 3300 NODE id1", "+OK"},
		{"0", "GET {b}1", "-MOVED 3300 node1"},
		{"1", "MGET {b}1 {b}2 {b}new", `["x" "y" "1"]`},
		{"2", "CLUSTER SETSLOT 3300 NODE id1", "+OK"},
		{"2", "GET {b}1", "-MOVED 3300 node1"},
		{"1", "GET b", `"5"`},
	}},
}

// digests are what digestN stands for: of "return 41" and "return 42".
var digests = []string{
	"063d98099a90c63456a3c8b9adbfd87b5d09674e",
	"1fa00e76656cc152ad327c13fe365858fd7be306",
}

func TestExchangesWithClustertest(t *testing.T) {
	converse(t, clustertest.Start(t).Addrs())
}

// TestExchangesWithServers holds the same table against real nodes.
func TestExchangesWithServers(t *testing.T) {
	c := servertest.Start(t)
	version, err := c.Version(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(version, "redis 7.0.") {
		t.Skipf("the servers are %s, and clustertest speaks as Redis 7.0 does", version)
	}
	converse(t, c.Addrs())
}

// converse holds the exchanges with six nodes, in order.
func converse(t *testing.T, addrs []string) {
	wires := map[string]*wire{}
	connect := func(on string) *wire {
		if wires[on] == nil {
			wires[on] = dial(t, addrs[on[0]-'0'])
		}
		return wires[on]
	}
	var forth, back []string
	for i, addr := range addrs {
		id := strings.Trim(connect(fmt.Sprint(i)).do("CLUSTER", "MYID"), `"`)
		_, port, _ := strings.Cut(addr, ":")
		forth = append(forth, fmt.Sprint("id", i), id, fmt.Sprint("port", i), port)
		back = append(back, id, fmt.Sprint("id", i), addr, fmt.Sprint("node", i))
	}
	for i, sha := range digests {
		forth = append(forth, fmt.Sprint("digest", i), sha)
	}
	send := strings.NewReplacer(forth...)
	// Ports stand alone in some replies and inside of addresses in others, so what is
	// wanted gets the real ones, and addresses of the reply get their names back.
	name := strings.NewReplacer(back...)
	for _, group := range exchanges {
		t.Run(group.name, func(t *testing.T) {
			for _, e := range group.steps {
				w := connect(e.on)
				w.tb = t
				got := w.do(wordsOf(send.Replace(e.send))...)
				want := name.Replace(send.Replace(e.want))
				if got = name.Replace(got); !matches(want, got) {
					t.Errorf("node %s, %s:\n got %s\nwant %s", e.on, e.send, got, want)
				}
			}
		})
	}
}

// wordsOf splits a command at its spaces. Two spaces have an empty word between them.
func wordsOf(s string) []string {
	var words []string
	for len(s) > 0 {
		end := strings.IndexByte(s, ' ')
		if s[0] == '\'' {
			end = 1 + strings.IndexByte(s[1:], '\'')
			words = append(words, s[1:end])
			s = strings.TrimPrefix(s[end+1:], " ")
			continue
		}
		if end < 0 {
			end = len(s)
		}
		words = append(words, s[:end])
		s = strings.TrimPrefix(s[end:], " ")
	}
	return words
}
