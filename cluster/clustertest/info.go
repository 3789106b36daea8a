package clustertest

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// info answers INFO with the sections that tests and clients look at.
func (s *session) info(args []string, now time.Time) {
	n := s.node
	sections := []string{"SERVER", "CLIENTS", "REPLICATION", "CLUSTER", "KEYSPACE"}
	if len(args) > 1 {
		sections = nil
		for _, a := range args[1:] {
			sections = append(sections, strings.ToUpper(a))
		}
		if slices.Contains(sections, "ALL") || slices.Contains(sections, "DEFAULT") || slices.Contains(sections, "EVERYTHING") {
			s.info(args[:1], now)
			return
		}
	}
	var parts []string
	for _, section := range sections {
		if text := n.section(section, now); text != "" {
			parts = append(parts, text)
		}
	}
	s.reply.verbatim(strings.Join(parts, "\r\n"))
}

func (n *node) section(name string, now time.Time) string {
	switch name {
	case "SERVER":
		return fmt.Sprintf("# Server\r\nredis_version:%s\r\nredis_mode:cluster\r\nrun_id:%s\r\ntcp_port:%d\r\n"+
			"server_time_usec:%d\r\nuptime_in_seconds:%d\r\n",
			version, n.runID, n.port, now.UnixMicro(), int(time.Since(n.started).Seconds()))
	case "CLIENTS":
		clients := 0
		n.connections.Range(func(_, _ any) bool { clients++; return true })
		return fmt.Sprintf("# Clients\r\nconnected_clients:%d\r\n", clients)
	case "REPLICATION":
		return n.replication()
	case "CLUSTER":
		return "# Cluster\r\ncluster_enabled:1\r\n"
	case "KEYSPACE":
		all, expiring := n.keys(), 0
		for _, key := range all {
			if n.shard.expiry(key) != 0 {
				expiring++
			}
		}
		if len(all) == 0 {
			return "# Keyspace\r\n"
		}
		return fmt.Sprintf("# Keyspace\r\ndb0:keys=%d,expires=%d,avg_ttl=0\r\n", len(all), expiring)
	}
	return ""
}

func (n *node) replication() string {
	p := n.partner()
	if !n.isPrimary() {
		link := "up"
		if !p.alive {
			link = "down"
		}
		return fmt.Sprintf("# Replication\r\nrole:slave\r\nmaster_host:%s\r\nmaster_port:%d\r\nmaster_link_status:%s\r\n"+
			"slave_repl_offset:0\r\nslave_read_only:1\r\nconnected_slaves:0\r\nmaster_repl_offset:0\r\n", host, p.port, link)
	}
	text := fmt.Sprintf("# Replication\r\nrole:master\r\nconnected_slaves:%d\r\n", n.replicas())
	if n.replicas() > 0 {
		text += fmt.Sprintf("slave0:ip=%s,port=%d,state=online,offset=0,lag=0\r\n", host, p.port)
	}
	return text + "master_failover_state:no-failover\r\nmaster_repl_offset:0\r\n"
}
