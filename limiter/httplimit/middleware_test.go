package httplimit_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slotlimit/slotlimit/limiter"
	"github.com/slotlimit/slotlimit/limiter/httplimit"
)

// A fixed allower gives one answer.
type fixed struct {
	res limiter.Result
	err error
}

func (f fixed) AllowN(context.Context, string, int64) (limiter.Result, error) { return f.res, f.err }

var hello = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hello") })

// get sends one request of user "alice" through the middleware.
func get(a limiter.Allower, opts ...httplimit.Option) *http.Response {
	r := httptest.NewRequest("GET", "/", nil)
	r.Header.Set("X-API-Key", "alice")
	w := httptest.NewRecorder()
	httplimit.New(a, httplimit.Header("x-api-key"), opts...)(hello).ServeHTTP(w, r)
	return w.Result()
}

func TestAnswers(t *testing.T) {
	limit := limiter.PerMinute(100)
	for _, c := range []struct {
		name   string
		res    limiter.Result
		err    error
		status int
		header map[string]string // "" means absent
		body   string
	}{
		{
			"allowed",
			limiter.Result{Allowed: true, Limit: limit, Remaining: 97, ResetAfter: 20 * time.Second, Key: "k", Window: 29139840},
			nil, 200,
			map[string]string{"X-RateLimit-Limit": "100", "X-RateLimit-Remaining": "97", "X-RateLimit-Reset": "1748390460", "Retry-After": ""},
			"hello",
		}, {
			"denied",
			limiter.Result{Limit: limit, RetryAfter: 19*time.Second + 1, ResetAfter: 19*time.Second + 1, Key: "k", Window: 29139840},
			nil, 429,
			map[string]string{"X-RateLimit-Limit": "100", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1748390460", "Retry-After": "20", "Content-Type": "application/json"},
			`{"error":"rate limit exceeded","limit":"100/1m","retry_after":20}` + "\n",
		}, {
			"denied for a moment, in a window that ends within a second",
			limiter.Result{Limit: limiter.Per(5, 250*time.Millisecond), RetryAfter: time.Millisecond, Key: "k", Window: 4 * 1748390460},
			nil, 429,
			map[string]string{"X-RateLimit-Reset": "1748390461", "Retry-After": "1"},
			`{"error":"rate limit exceeded","limit":"5/250ms","retry_after":1}` + "\n",
		}, {
			"unavailable", limiter.Result{}, fmt.Errorf("x: %w", limiter.ErrUnavailable), 503,
			map[string]string{"X-RateLimit-Limit": "", "X-RateLimit-Remaining": "", "Retry-After": "1"},
			`{"error":"rate limiter unavailable","retry_after":1}` + "\n",
		}, {
			"ambiguous", limiter.Result{}, limiter.ErrAmbiguous, 503,
			map[string]string{"X-RateLimit-Limit": ""},
			`{"error":"rate limiter unavailable","retry_after":1}` + "\n",
		}, {
			"no user", limiter.Result{}, limiter.ErrEmptyUser, 400,
			map[string]string{"X-RateLimit-Limit": "", "Retry-After": ""},
			`{"error":"request names no user to count it for"}` + "\n",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			resp := get(fixed{c.res, c.err})
			body, _ := io.ReadAll(resp.Body)
			if resp.StatusCode != c.status || string(body) != c.body {
				t.Errorf("%d %s, want %d %s", resp.StatusCode, body, c.status, c.body)
			}
			for name, want := range c.header {
				if got := resp.Header.Get(name); got != want {
					t.Errorf("%s: %q, want %q", name, got, want)
				}
			}
		})
	}
}

// A fallback that has no window still has a reset.
func TestResetWithoutWindow(t *testing.T) {
	before := time.Now().Unix()
	resp := get(fixed{res: limiter.Result{Allowed: true, ResetAfter: time.Hour}})
	reset, err := strconv.ParseInt(resp.Header.Get("X-RateLimit-Reset"), 10, 64)
	if after := time.Now().Unix(); err != nil || reset < before+3600 || reset > after+3601 {
		t.Errorf("reset %d, %v, want about %d", reset, err, before+3600)
	}
}

func TestNoKey(t *testing.T) {
	var got error
	handler := httplimit.WithErrorHandler(func(_ http.ResponseWriter, _ *http.Request, err error) { got = err })
	limited := httplimit.New(fixed{}, httplimit.Header("X-API-Key"), handler)(hello)
	limited.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
	if !errors.Is(got, httplimit.ErrNoKey) {
		t.Errorf("error %v, want ErrNoKey", got)
	}
	w := httptest.NewRecorder()
	httplimit.New(fixed{}, httplimit.Header("X-API-Key"))(hello).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	if w.Code != http.StatusBadRequest {
		t.Errorf("status %d, want 400", w.Code)
	}
}

func TestErrorHandler(t *testing.T) {
	var got error
	handler := httplimit.WithErrorHandler(func(w http.ResponseWriter, _ *http.Request, err error) {
		got = err
		w.WriteHeader(http.StatusTeapot)
	})
	if resp := get(fixed{err: limiter.ErrAmbiguous}, handler); resp.StatusCode != http.StatusTeapot {
		t.Errorf("status %d", resp.StatusCode)
	}
	if !errors.Is(got, limiter.ErrAmbiguous) {
		t.Errorf("error %v", got)
	}
}

func TestNilsPanic(t *testing.T) {
	for name, f := range map[string]func(){
		"allower":       func() { httplimit.New(nil, httplimit.RemoteAddr) },
		"limiter":       func() { httplimit.New((*limiter.Limiter)(nil), httplimit.RemoteAddr) },
		"key":           func() { httplimit.New(fixed{}, nil) },
		"error handler": func() { httplimit.New(fixed{}, httplimit.RemoteAddr, httplimit.WithErrorHandler(nil)) },
		"handler":       func() { httplimit.New(fixed{}, httplimit.RemoteAddr)(nil) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("nil %s: no panic", name)
				}
			}()
			f()
		}()
	}
}

func TestKeys(t *testing.T) {
	request := func(addr string) *http.Request {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = addr
		return r
	}
	for addr, want := range map[string]string{
		"192.0.2.7:1234":               "192.0.2.7",
		"[::ffff:192.0.2.7]:1234":      "192.0.2.7",
		"[2001:db8:1:2:3:4:5:6]:1234":  "2001:db8:1:2::/64",
		"[2001:db8:1:2:ffff::1]:99":    "2001:db8:1:2::/64",
		"[fe80::1%eth0]:1234":          "fe80::/64",
		"":                             "",
		"@":                            "",
		"192.0.2.7":                    "",
		"[2001:db8:1:2:3:4:5:6]:70000": "",
	} {
		user, err := httplimit.RemoteAddr(request(addr))
		if user != want || (want == "") != (err != nil) {
			t.Errorf("RemoteAddr(%q) = %q, %v, want %q", addr, user, err, want)
		}
	}

	key := httplimit.Header("X-API-Key")
	if _, err := key(request("")); err == nil {
		t.Error("no header, and no error")
	}
	r := request("")
	r.Header.Set("X-API-Key", "secret")
	user, err := key(r)
	if err != nil || len(user) != 64 || user == "secret" {
		t.Errorf("Header: %q, %v", user, err)
	}
	other := request("")
	other.Header.Set("X-API-Key", "secret2")
	if same, _ := key(other); same == user {
		t.Error("two values are one user")
	}
}

// passes drives 64 clients at once, over real connections, and holds the
// middleware to exactly the rate for each user.
func passes(t *testing.T, lim *limiter.Limiter) {
	const clients, each, users = 64, 12, 3
	rate := lim.Limit().Rate
	server := httptest.NewServer(httplimit.New(lim, httplimit.Header("X-API-Key"))(hello))
	defer server.Close()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: clients}}
	defer client.CloseIdleConnections()

	var passed, denied [users]atomic.Int64
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			for i := range each {
				u := i % users
				req, _ := http.NewRequest("GET", server.URL, nil)
				req.Header.Set("X-API-Key", fmt.Sprint("user-", u))
				resp, err := client.Do(req)
				if err != nil {
					t.Error(err)
					return
				}
				checkAnswer(t, resp, rate, &passed[u], &denied[u])
				resp.Body.Close()
			}
		})
	}
	wg.Wait()
	for u := range users {
		if p, d := passed[u].Load(), denied[u].Load(); p != rate || p+d != clients*each/users {
			t.Errorf("user %d: %d passed and %d denied, want %d and %d", u, p, d, rate, clients*each/users-rate)
		}
	}
}

func checkAnswer(t *testing.T, resp *http.Response, rate int64, passed, denied *atomic.Int64) {
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
	}
	number := func(name string) int64 {
		n, err := strconv.ParseInt(resp.Header.Get(name), 10, 64)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		return n
	}
	remaining, reset := number("X-RateLimit-Remaining"), number("X-RateLimit-Reset")
	if number("X-RateLimit-Limit") != rate || remaining < 0 || remaining >= max(1, rate) || reset < time.Now().Unix() {
		t.Errorf("headers %v", resp.Header)
	}
	switch resp.StatusCode {
	case http.StatusOK:
		passed.Add(1)
	case http.StatusTooManyRequests:
		denied.Add(1)
		var told struct {
			RetryAfter int64 `json:"retry_after"`
		}
		if err := json.Unmarshal(body, &told); err != nil || told.RetryAfter != number("Retry-After") || told.RetryAfter < 1 || remaining != 0 {
			t.Errorf("denial %q with %v: %v", body, resp.Header, err)
		}
	default:
		t.Errorf("status %d: %s", resp.StatusCode, body)
	}
}
