package servertest

import (
	"context"
	"fmt"
)

// Version returns what the servers are: "redis 7.0.15", "valkey 9.1.2". Tests of
// what one version does, and others do differently, ask for it.
func (c *Cluster) Version(ctx context.Context) (string, error) {
	info, err := c.nodes[0].Client.InfoMap(ctx, "server").Result()
	if err != nil {
		return "", err
	}
	// Valkey gives the version of Redis that it is compatible with as well.
	for _, name := range []string{"valkey", "redis"} {
		if v := info["Server"][name+"_version"]; v != "" {
			return name + " " + v, nil
		}
	}
	return "", fmt.Errorf("INFO tells no version: %v", info)
}
