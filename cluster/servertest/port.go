package servertest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// A Redis Cluster node listens on its port and, for its peers, on that plus 10000.
// Both are chosen below 32768, where Linux begins to take ports for outgoing
// connections (other systems begin higher): a port free now would else be gone soon.
const (
	firstPort = 11000
	lastPort  = 22000
	busOffset = 10000
)

// FreePort finds a port of 127.0.0.1 that is free along with the bus port that
// belongs to it. It stays free only until somebody takes it, so whoever binds it must be
// ready to ask for another.
func FreePort() (int, error) {
	for range 200 {
		port := firstPort + rand.N(lastPort-firstPort)
		if free(port) && free(port+busOffset) {
			return port, nil
		}
	}
	return 0, fmt.Errorf("no free port between %d and %d", firstPort, lastPort)
}

func free(port int) bool {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return false
	}
	return l.Close() == nil
}
