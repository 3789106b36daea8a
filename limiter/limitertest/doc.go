// Package limitertest holds the conformance suite of package limiter: what a
// limiter promises, checked on whatever cluster it is given.
//
// This project runs it on the in-process cluster, on six redis-server processes
// and on six containers. A service author runs it on the cluster that the
// service will use, before trusting it:
//
//	func TestOurCluster(t *testing.T) {
//		client, err := cluster.Open(t.Context(), cluster.Config{Addrs: addrs})
//		...
//		limitertest.Run(t, limitertest.Target{Client: client})
//	}
//
// It takes some seconds, and leaves no key behind.
package limitertest
