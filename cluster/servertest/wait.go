package servertest

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// until calls ok until it returns nil, and at the end of ctx returns the last error
// with the context's. An error made by stop ends the wait too.
func until(ctx context.Context, ok func() error) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ok()
		var final finalError
		if err == nil || errors.As(err, &final) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		case <-tick.C:
		}
	}
}

// A finalError is one that waiting longer does not cure.
type finalError struct{ error }

func (e finalError) Unwrap() error { return e.error }

func stop(err error) error { return finalError{err} }
