package audit

import "time"

// An Event is something that happened to the cluster while the load ran.
//
// Its times are the load test's own, not a node's: it happened after From, the last
// look that did not show it, and before To, the first look that did.
type Event struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
	Kind EventKind `json:"kind"`

	// Node is the address of the node that was promoted, restarted, received the slots, or
	// went down or came up.
	Node string `json:"node"`

	// Was is the address of the former primary, or of the giver of the slots; "" if
	// there is none.
	Was string `json:"was,omitempty"`

	// Slots are the hash slots that it concerns: those of the promoted or restarted primary, or
	// those that moved. For a NodeUp, those that the node had believed to own when it went down, and had
	// lost by the time it was back. Empty for a node that is no primary. If it is empty
	// for a Promotion or a Restart, the audit works out who held a slot from the other events and the
	// final topology.
	Slots []SlotRange `json:"slots,omitempty"`

	// Graceful says that it loses nothing: a CLUSTER FAILOVER without FORCE that the run itself
	// made, or a completed move of slots.
	Graceful bool `json:"graceful,omitempty"`

	// Detail is for people, such as "config epoch 3 -> 7" or "run id 1a2b -> 3c4d".
	Detail string `json:"detail,omitempty"`
}

// An EventKind says what happened, in the words of the report.
type EventKind string

// The kinds of events.
const (
	Promotion  EventKind = "promotion"   // a replica became the primary of Slots
	Restart    EventKind = "restart"     // a process was replaced by another, which may have come back empty
	SlotsMoved EventKind = "slots moved" // another primary owns Slots
	NodeDown   EventKind = "node down"   // a node answers no more
	NodeUp     EventKind = "node up"     // a node answers again, the same process as before, or is new
)
