// Package loadgen puts a limiter under load: which user each request is for, and the
// workers that send them.
//
// A [Schedule] is a pure function of the seed and the request's number, so two runs with
// one seed ask for the same users in the same order of numbers, whatever the number of
// workers and whatever the cluster does. [Run] is a closed loop: a fixed number of
// workers, of which each sends its next request when the last one is answered.
//
// # Where new things go
//
// Another distribution of users is a field of Schedule. An open loop, with requests that
// are due at a time, is a method Due of Schedule next to User, for which the workers of Run
// wait, and the time due in [Attempt].
package loadgen
