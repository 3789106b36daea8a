package cluster_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/slotlimit/slotlimit/cluster"
	"github.com/slotlimit/slotlimit/cluster/clustertest"
)

// A tlsFront stands before a node and speaks TLS to its clients.
type tlsFront struct {
	net.Listener
	accepted atomic.Int64

	mu    sync.Mutex
	conns []net.Conn
}

// newTLSFront returns a front of the node, and what its clients must be set to.
func newTLSFront(t *testing.T, node string) (*tlsFront, *tls.Config) {
	t.Helper()
	server := httptest.NewTLSServer(nil) // for its certificate
	server.Close()
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: server.TLS.Certificates})
	if err != nil {
		t.Fatal(err)
	}
	f := &tlsFront{Listener: l}
	var passing sync.WaitGroup
	passing.Go(func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			f.accepted.Add(1)
			far, err := net.Dial("tcp", node)
			if err != nil {
				near.Close()
				continue
			}
			f.mu.Lock()
			f.conns = append(f.conns, near, far)
			f.mu.Unlock()
			for _, way := range [][2]net.Conn{{near, far}, {far, near}} {
				passing.Go(func() {
					_, _ = io.Copy(way[0], way[1])
					near.Close()
					far.Close()
				})
			}
		}
	})
	t.Cleanup(func() {
		l.Close()
		f.cut()
		passing.Wait()
	})
	trusted := x509.NewCertPool()
	trusted.AddCert(server.Certificate())
	return f, &tls.Config{RootCAs: trusted, ServerName: "example.com"}
}

// cut ends all connections.
func (f *tlsFront) cut() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, conn := range f.conns {
		conn.Close()
	}
	f.conns = nil
}

// Batches go over TLS where the service's client does, all over one connection, and where
// that has ended in the meantime the next call takes another.
func TestTLS(t *testing.T) {
	c := clustertest.Start(t)
	f, config := newTLSFront(t, c.Addr(0))
	client := wrap(t, redis.NewClient(&redis.Options{Addr: f.Addr().String(), TLSConfig: config}))
	key := keyOf(c, 0)
	var counted atomic.Int64
	count := func() {
		if _, err := client.Run(t.Context(), incr(key)); err != nil {
			t.Error(err)
			return
		}
		counted.Add(1)
	}
	for range 20 {
		count()
	}
	var callers sync.WaitGroup
	for range 32 {
		callers.Go(func() {
			for range 20 {
				count()
			}
		})
	}
	callers.Wait()
	opened := f.accepted.Load()
	if opened != 1 {
		t.Errorf("%d connections, want 1", opened)
	}
	time.Sleep(100 * time.Millisecond) // till nobody reads any more
	f.cut()
	time.Sleep(50 * time.Millisecond) // till the end has arrived
	count()
	if again := f.accepted.Load() - opened; again != 1 {
		t.Errorf("%d connections after the end of the first, want 1", again)
	}
	reply, err := client.Run(t.Context(), incr(key))
	if err != nil || reply[0] != counted.Load()+1 {
		t.Errorf("%v, %v, want %d", reply, err, counted.Load()+1)
	}

	// Who does not trust the certificate does not get a connection, and nothing is sent.
	client = wrap(t, redis.NewClient(&redis.Options{Addr: f.Addr().String(), TLSConfig: &tls.Config{ServerName: "example.com"}}))
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := client.Run(ctx, incr(key)); !errors.Is(err, cluster.ErrUnavailable) {
		t.Errorf("%v, want ErrUnavailable", err)
	}
}
