package audit_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"reflect"
	"syscall"
	"testing"
	"time"

	"github.com/slotlimit/slotlimit/loadtest/audit"
)

func TestCauseOf(t *testing.T) {
	late := &net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}
	for _, test := range []struct {
		err  error
		want audit.Cause
	}{
		{late, audit.CauseTimeout},
		{&net.DNSError{IsTimeout: true}, audit.CauseTimeout},
		{context.DeadlineExceeded, audit.CauseTimeout},
		{&net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)}, audit.CauseReset},
		{syscall.EPIPE, audit.CauseReset},
		{io.EOF, audit.CauseEOF},
		{io.ErrUnexpectedEOF, audit.CauseEOF},
		{errors.Join(late, io.EOF), audit.CauseEOF},
		{context.Canceled, audit.CauseOther},
		{errors.New("strange"), audit.CauseOther},
		{nil, audit.CauseOther},
	} {
		if got := audit.CauseOf(test.err); got != test.want {
			t.Errorf("%v: %s, want %s", test.err, got, test.want)
		}
		if test.err == nil {
			continue
		}
		if got := audit.CauseOf(fmt.Errorf("of a call: %w", test.err)); got != test.want {
			t.Errorf("wrapped %v: %s, want %s", test.err, got, test.want)
		}
	}
}

func TestLedgerKeepsCauses(t *testing.T) {
	l := audit.NewLedger()
	l.AmbiguousBy(audit.CauseTimeout, "a", "k")
	l.AmbiguousBy(audit.CauseTimeout, "a", "k")
	l.AmbiguousBy(audit.CauseEOF, "a", "k")
	l.AmbiguousBy(audit.CauseReset, "a", "")
	l.Ambiguous("a", "k")
	a := l.Account()
	l.AmbiguousBy(audit.CauseTimeout, "a", "k") // the account is closed
	want := audit.Causes{audit.CauseTimeout: 2, audit.CauseEOF: 1, audit.CauseOther: 1}
	if got := a.Told[0]; got.Ambiguous != 4 || !reflect.DeepEqual(got.Causes, want) {
		t.Errorf("%d ambiguous, causes %v, want %v", got.Ambiguous, got.Causes, want)
	}
	if got := a.KeylessCauses["a"]; a.Keyless["a"] != 1 || got[audit.CauseReset] != 1 || len(got) != 1 {
		t.Errorf("without a key: %v", got)
	}
}

// The first acknowledged call is the one that was asked for first, not the one that came back first.
func TestLedgerKeepsTheFirstTime(t *testing.T) {
	begin := time.Now()
	l := audit.NewLedger()
	l.AmbiguousBy(audit.CauseTimeout, "a", "asked")
	for _, second := range []int{7, 3, 5} {
		l.AcknowledgedAt(time.Unix(int64(second), 0), "a", 1, "asked", true)
	}
	l.Acknowledged("a", 1, "asked", true) // now, which is later
	l.Acknowledged("b", 1, "now", true)
	for _, got := range l.Account().Told {
		switch {
		case got.Key == "asked" && !got.First.Equal(time.Unix(3, 0)):
			t.Errorf("first at %v, want second 3", got.First)
		case got.Key == "now" && (got.First.Before(begin) || got.First.After(time.Now())):
			t.Errorf("first at %v, want now", got.First)
		}
	}
}
