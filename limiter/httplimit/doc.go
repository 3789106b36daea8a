// Package httplimit puts a limiter in front of HTTP handlers.
//
//	limited := httplimit.New(lim, httplimit.Header("X-API-Key"))
//	http.Handle("/api/", limited(api))
//
// Every answer that a decision was made for carries
//
//	X-RateLimit-Limit      the rate: attempts that are allowed in a period
//	X-RateLimit-Remaining  how many more are allowed until the reset
//	X-RateLimit-Reset      when the count starts again, Unix time in seconds, rounded up
//
// and a denied request is answered
//
//	429 Too Many Requests
//	Retry-After            seconds to wait, rounded up, at least 1
//
// with a JSON body that says the same. All of it is of one decision: no second
// look at the counter, which could be of another window.
//
// Without a decision there is no 429, and no X-RateLimit field. A request without a user is 400, and when the
// cluster gives no decision the answer is 503: the client did nothing wrong, and one
// that believes it is limited would stay away for longer than the outage lasts.
package httplimit
