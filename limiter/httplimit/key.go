package httplimit

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
)

// ErrNoKey means that a request holds nothing to tell its user by. It is answered
// with 400.
var ErrNoKey = errors.New("httplimit: request names no user")

// A KeyFunc says which user a request counts for. An error, which the middleware
// wraps in [ErrNoKey], or an empty user ends the request with 400. It must be safe
// for concurrent use.
type KeyFunc func(*http.Request) (user string, err error)

// Header returns a KeyFunc that tells users apart by a header's value, such as an
// API key. The value is hashed (SHA-256), so that secrets do not show up in Redis
// and its logs. A request without the header has no user.
func Header(name string) KeyFunc {
	return func(r *http.Request) (string, error) {
		value := r.Header.Get(name)
		if value == "" {
			return "", errors.New("no header " + http.CanonicalHeaderKey(name))
		}
		sum := sha256.Sum256([]byte(value))
		return hex.EncodeToString(sum[:]), nil
	}
}

// RemoteAddr tells users apart by the address that the connection came from; of an
// IPv6 address by its first 64 bits, which is what one household or server gets. It
// looks at no header: behind a proxy, all requests come from the proxy.
func RemoteAddr(r *http.Request) (string, error) {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return "", fmt.Errorf("remote address %q is no address and port", r.RemoteAddr)
	}
	addr := peer.Addr().Unmap().WithZone("")
	if addr.Is4() {
		return addr.String(), nil
	}
	prefix, err := addr.Prefix(64)
	if err != nil {
		return "", fmt.Errorf("remote address %q is no address and port", r.RemoteAddr)
	}
	return prefix.String(), nil
}
