package httplimit

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/slotlimit/slotlimit/limiter"
)

// An Option changes how the middleware answers.
type Option func(*middleware)

// WithErrorHandler replaces the answer to requests for which no decision was
// made: err wraps [ErrNoKey], where nobody is named to count for, or is what the
// Allower returned, such as [limiter.ErrUnavailable] or [limiter.ErrAmbiguous]. It is also
// the place to log. To let requests pass without a decision, give New an Allower
// that turns such errors into an allowed Result.
func WithErrorHandler(handler func(w http.ResponseWriter, r *http.Request, err error)) Option {
	return func(m *middleware) { m.failed = handler }
}

type middleware struct {
	allower limiter.Allower
	key     KeyFunc
	failed  func(http.ResponseWriter, *http.Request, error)
	next    http.Handler
}

// New returns middleware that lets a request through when the allower, usually a
// [*limiter.Limiter], allows an attempt of cost 1 for the user that key finds. It
// panics on a nil allower, key or handler: a service must not start without
// the limit that it was given.
func New(allower limiter.Allower, key KeyFunc, opts ...Option) func(http.Handler) http.Handler {
	if allower == nil {
		panic("httplimit: nil Allower")
	}
	if lim, ok := allower.(*limiter.Limiter); ok && lim == nil {
		panic("httplimit: nil *limiter.Limiter")
	}
	if key == nil {
		panic("httplimit: nil KeyFunc")
	}
	m := middleware{allower: allower, key: key, failed: fail}
	for _, opt := range opts {
		opt(&m)
	}
	if m.failed == nil {
		panic("httplimit: nil error handler")
	}
	return func(next http.Handler) http.Handler {
		if next == nil {
			panic("httplimit: nil handler")
		}
		m := m
		m.next = next
		return &m
	}
}

func (m *middleware) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	user, err := m.key(r)
	if err != nil {
		m.failed(w, r, fmt.Errorf("%w: %w", ErrNoKey, err))
		return
	}
	res, err := m.allower.AllowN(r.Context(), user, 1)
	if errors.Is(err, limiter.ErrEmptyUser) {
		err = fmt.Errorf("%w: %w", ErrNoKey, err)
	}
	if err != nil {
		m.failed(w, r, err)
		return
	}
	setHeaders(w.Header(), res, time.Now())
	if res.Allowed {
		m.next.ServeHTTP(w, r)
		return
	}
	deny(w, res)
}

func setHeaders(h http.Header, res limiter.Result, now time.Time) {
	h.Set("X-RateLimit-Limit", strconv.FormatInt(res.Limit.Rate, 10))
	h.Set("X-RateLimit-Remaining", strconv.FormatInt(res.Remaining, 10))
	h.Set("X-RateLimit-Reset", strconv.FormatInt(resetUnix(res, now), 10))
}

// resetUnix returns the Unix time in seconds, rounded up, of the reset. A counter's
// window says it to the millisecond; now plus the time left would be late by the
// way of the reply, and rounding up makes a second of that.
func resetUnix(res limiter.Result, now time.Time) int64 {
	milli := now.Add(res.ResetAfter).UnixMilli()
	if res.Key != "" {
		milli = (res.Window + 1) * res.Limit.Period.Milliseconds()
	}
	return (milli + 999) / 1000
}

// seconds rounds a wait up to whole seconds, at least 1: a client that came back
// after 0 s would be denied again.
func seconds(d time.Duration) int64 {
	return max(1, int64((d+time.Second-1)/time.Second))
}

// A problem is the body of an answer that the handler did not give.
type problem struct {
	Error      string `json:"error"`
	Limit      string `json:"limit,omitempty"`       // as limiter.ParseLimit reads it
	RetryAfter int64  `json:"retry_after,omitempty"` // seconds
}

func deny(w http.ResponseWriter, res limiter.Result) {
	wait := seconds(res.RetryAfter)
	w.Header().Set("Retry-After", strconv.FormatInt(wait, 10))
	answer(w, http.StatusTooManyRequests, problem{"rate limit exceeded", res.Limit.String(), wait})
}

// fail answers when no decision was made. What went wrong in the cluster is not
// the client's business, and could name hosts.
func fail(w http.ResponseWriter, _ *http.Request, err error) {
	switch {
	case errors.Is(err, ErrNoKey):
		answer(w, http.StatusBadRequest, problem{Error: "request names no user to count it for"})
	default:
		w.Header().Set("Retry-After", "1")
		answer(w, http.StatusServiceUnavailable, problem{Error: "rate limiter unavailable", RetryAfter: 1})
	}
}

func answer(w http.ResponseWriter, status int, body problem) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(body) // an error means that the client is gone
}
