package clustertest

// Calls returns how many commands of this name, in any case, node index has run, or
// all nodes together for [AllNodes]. Redirected and refused ones did not run, and those
// inside a script are not counted. To tell that something took one round trip, see
// [Cluster.Requests].
func (c *Cluster) Calls(index int, name string) int {
	return c.count(index, name, func(n *node, i int) int64 { return n.calls[i].Load() })
}

// Requests returns how many commands of this name, in any case, clients have sent to
// node index, or to all for [AllNodes]: those that ran, those that were answered with
// a redirect or an error, and those that wait in a node that hangs.
func (c *Cluster) Requests(index int, name string) int {
	return c.count(index, name, func(n *node, i int) int64 { return n.requests[i].Load() })
}

// ResetCounts sets what [Cluster.Calls] and [Cluster.Requests] count back to 0.
func (c *Cluster) ResetCounts() {
	for _, n := range c.nodes {
		for i := range commandList {
			n.calls[i].Store(0)
			n.requests[i].Store(0)
		}
	}
}

func (c *Cluster) count(index int, name string, of func(n *node, i int) int64) int {
	cmd := lookup(name)
	if cmd == nil {
		return 0
	}
	total := 0
	for _, n := range c.nodes {
		if index == AllNodes || index == n.index {
			total += int(of(n, cmd.index))
		}
	}
	return total
}
