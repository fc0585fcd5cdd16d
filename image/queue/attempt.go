package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/image"
	"github.com/refit-project/refit/internal/wait"
)

// A Puller wraps one of these errors to classify a failure.
var (
	// ErrTooManyRequests means that the registry limits the rate of requests; retries wait longer.
	ErrTooManyRequests = errors.New("too many requests")
	// ErrAuthentication, ErrMissing and the others are retried by the policy: secrets and tags may be created later.
	ErrAuthentication = errors.New("authentication required or access denied")
	ErrMissing        = errors.New("no such image")
	ErrDiskFull       = errors.New("no space left on the node's disk")
	ErrDigestMismatch = errors.New("the registry served other bytes than the digest names")
)

var (
	// backoff is the time between attempts. kruise-daemon has the same first and longest back-off.
	backoff = wait.Backoff{First: time.Second, Last: 30 * time.Second}
	// limitedBackoff applies after ErrTooManyRequests. CRI does not pass on the header Retry-After.
	limitedBackoff = wait.Backoff{First: 15 * time.Second, Last: 2 * time.Minute}
)

// Backoff returns the time between failed attempt number n, counted from 1, and the next attempt.
func Backoff(n int, err error) time.Duration {
	if errors.Is(err, ErrTooManyRequests) {
		return limitedBackoff.After(n)
	}
	return backoff.After(n)
}

// progress is the state of a pull with fields that only the queue needs.
type progress struct {
	image.State
	attempts            int           // begun so far
	failure             string        // message of the last failure
	pause               time.Duration // from the last failure to the next attempt
	notBefore, deadline time.Time
}

// begin returns the state when an attempt begins.
func (s progress) begin(want *image.Want, now time.Time) progress {
	if s.Started.IsZero() {
		s.Started = now
		s = s.within(want.Deadline)
	}
	s.attempts++
	s.Phase, s.Message, s.Pulled, s.Total = v1beta1.ImagePhasePulling, "", 0, 0
	if s.attempts > 1 {
		s.Message = s.attempt(want)
	}
	return s
}

// within returns the state with a limit for all attempts; 0 means no limit.
func (s progress) within(limit time.Duration) progress {
	s.deadline = time.Time{}
	if limit > 0 && !s.Started.IsZero() {
		s.deadline = s.Started.Add(limit)
	}
	return s
}

// under returns the state after a change of the policy. An attempt in progress continues under its old policy. The
// message about it, and whether another attempt follows, depend on the new policy.
func (s progress) under(want *image.Want, now time.Time) progress {
	s = s.within(want.Deadline)
	switch {
	case s.Phase == v1beta1.ImagePhasePulling && s.attempts > 1:
		s.Message = s.attempt(want)
	case s.Phase == v1beta1.ImagePhaseWaiting && s.attempts > 0:
		return s.retry(want, now)
	}
	return s
}

// attempt returns the number of the last attempt, and how many there may be. The limit may have become lower since it
// began, because a job that allowed more has been deleted or has ended.
func (s *progress) attempt(want *image.Want) string {
	if limit := want.Retries + 1; s.attempts > limit {
		return fmt.Sprintf("attempt %d (the limit is %d now)", s.attempts, limit)
	}
	return fmt.Sprintf("attempt %d of %d", s.attempts, want.Retries+1)
}

// end returns the state when an attempt has ended.
func (s progress) end(want *image.Want, got Pulled, err error, now time.Time) progress {
	if err == nil {
		s.Phase, s.ImageID, s.Completed = v1beta1.ImagePhaseSucceeded, got.ID, now
		s.Message, s.Present = "", got.Present
		if !got.Present {
			s.WithSecret = got.WithSecret
		}
		return s
	}
	if errors.Is(err, image.ErrReference) {
		return s.fail(err.Error(), now)
	}
	stalled := ""
	if errors.Is(err, context.DeadlineExceeded) && s.Total > 0 {
		stalled = fmt.Sprintf(" after %d of %d bytes", s.Pulled, s.Total)
	}
	s.failure, s.pause = fmt.Sprintf("failed%s: %v", stalled, err), Backoff(s.attempts, err)
	s.notBefore = now.Add(s.pause)
	return s.retry(want, now)
}

// retry returns the state between a failed attempt and the next one, if there is a next one.
func (s progress) retry(want *image.Want, now time.Time) progress {
	why := s.attempt(want) + " " + s.failure
	switch {
	case s.attempts > want.Retries:
		return s.fail(why, now)
	case !s.deadline.IsZero() && !s.notBefore.Before(s.deadline):
		return s.fail(fmt.Sprintf("no further attempt within activeDeadlineSeconds %d: %s", int64(want.Deadline/time.Second), why), now)
	}
	s.Phase, s.Message = v1beta1.ImagePhaseWaiting, fmt.Sprintf("%s; the next attempt is in %s", why, s.pause)
	return s
}

func (s progress) fail(message string, now time.Time) progress {
	s.Phase, s.Message, s.Completed = v1beta1.ImagePhaseFailed, message, now
	return s
}

// Causes of attempts that the queue has ended itself.
var (
	errTimeout  = timeout("not pulled within timeoutSeconds")
	errDeadline = timeout("not pulled within activeDeadlineSeconds")
)

// timeout is a context.DeadlineExceeded with another text.
type timeout string

func (t timeout) Error() string        { return string(t) }
func (t timeout) Is(target error) bool { return target == context.DeadlineExceeded }

// explain replaces an error that was caused by the queue itself by the cause.
func explain(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return cause
	}
	return err
}
