package audit

import (
	"context"
	"errors"
	"io"
	"os"
	"syscall"
)

// A Cause is a class of errors by which a reply is lost, in the word of the report.
type Cause string

// The causes.
const (
	CauseTimeout Cause = "timeout" // nothing came in time: the node hangs, or the network swallows
	CauseReset   Cause = "reset"   // the connection was broken off: the node or its machine died
	CauseEOF     Cause = "eof"     // the connection was closed, before the reply or within it
	CauseOther   Cause = "other"   // none of these, or not known
)

// CauseOf returns the class of the error of a call. The end of a connection counts
// before a time-out that came of it, since an error may wrap both.
func CauseOf(err error) Cause {
	var timeout interface{ Timeout() bool }
	switch {
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, syscall.ECONNABORTED):
		return CauseReset
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return CauseEOF
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded),
		errors.As(err, &timeout) && timeout.Timeout():
		return CauseTimeout
	}
	return CauseOther
}

// Causes count lost replies by cause.
type Causes map[Cause]int64

// add counts one more, in a map that is made when it is first needed: most counters have none.
func (c Causes) add(cause Cause) Causes {
	if c == nil {
		c = Causes{}
	}
	c[cause]++
	return c
}

func (c Causes) sum() (n int64) {
	for _, one := range c {
		n += one
	}
	return n
}
