package image

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/refit-project/refit/api/v1beta1"
)

// What a Puller says about a failure, beyond its text, by wrapping one of these.
var (
	// ErrTooManyRequests: the registry limits the rate of requests; retries wait longer.
	ErrTooManyRequests = errors.New("too many requests")
	// ErrAuthentication, ErrMissing and the rest are retried as the policy says: secrets and tags may be created later.
	ErrAuthentication = errors.New("authentication required or access denied")
	ErrMissing        = errors.New("no such image")
	ErrDiskFull       = errors.New("no space left on the node's disk")
	ErrDigestMismatch = errors.New("the registry served other bytes than the digest names")
)

// Back-off between attempts: doubled each time. The two bounds are those of a kruise-daemon.
const (
	firstBackoff = time.Second
	lastBackoff  = 30 * time.Second
	// limitedBackoff is the first one after ErrTooManyRequests. CRI does not pass on the header Retry-After.
	limitedBackoff     = 15 * time.Second
	lastLimitedBackoff = 2 * time.Minute
)

// Backoff is the time between failed attempt number n, counted from 1, and the next.
func Backoff(n int, err error) time.Duration {
	first, last := firstBackoff, lastBackoff
	if errors.Is(err, ErrTooManyRequests) {
		first, last = limitedBackoff, lastLimitedBackoff
	}
	return min(first<<min(n-1, 10), last)
}

// State is how far a pull is.
type State struct {
	Phase               v1beta1.ImagePullPhase
	Started, Completed  time.Time // zero: not yet
	ImageID             string
	Message             string
	Pulled, Total       int64 // bytes; zero where the runtime does not report them
	attempts            int   // begun so far
	notBefore, deadline time.Time
}

// Ended reports whether the pull is over, for this version.
func (s *State) Ended() bool {
	return s.Phase == v1beta1.ImagePhaseSucceeded || s.Phase == v1beta1.ImagePhaseFailed
}

// Percent of the bytes; 100 when the pull has succeeded, less before.
func (s *State) Percent() int32 {
	switch {
	case s.Phase == v1beta1.ImagePhaseSucceeded:
		return 100
	case s.Phase != v1beta1.ImagePhasePulling || s.Total <= 0:
		return 0
	}
	return int32(min(max(s.Pulled, 0)*100/s.Total, 99)) //nolint:gosec // 0 to 99
}

// begin is the state when an attempt begins.
func (s State) begin(want *Want, now time.Time) State {
	if s.Started.IsZero() {
		s.Started = now
		s = s.within(want.Deadline)
	}
	s.attempts++
	s.Phase, s.Message, s.Pulled, s.Total = v1beta1.ImagePhasePulling, "", 0, 0
	if s.attempts > 1 {
		s.Message = fmt.Sprintf("attempt %d of %d", s.attempts, s.allowed(want))
	}
	return s
}

// within is the state under a limit for all attempts; 0 for none.
func (s State) within(limit time.Duration) State {
	s.deadline = time.Time{}
	if limit > 0 && !s.Started.IsZero() {
		s.deadline = s.Started.Add(limit)
	}
	return s
}

// allowed attempts. Another job may have lowered the limit while one was under way that is beyond it now.
func (s *State) allowed(want *Want) int { return max(s.attempts, want.Retries+1) }

// end is the state when an attempt has ended.
func (s State) end(want *Want, imageID string, err error, now time.Time) State {
	if err == nil {
		s.Phase, s.ImageID, s.Completed = v1beta1.ImagePhaseSucceeded, imageID, now
		s.Message = ""
		return s
	}
	stalled := ""
	if errors.Is(err, context.DeadlineExceeded) && s.Total > 0 {
		stalled = fmt.Sprintf(" after %d of %d bytes", s.Pulled, s.Total)
	}
	why := fmt.Sprintf("attempt %d of %d failed%s: %v", s.attempts, s.allowed(want), stalled, err)
	pause := Backoff(s.attempts, err)
	switch {
	case errors.Is(err, ErrReference):
		return s.fail(err.Error(), now)
	case s.attempts > want.Retries:
		return s.fail(why, now)
	case !s.deadline.IsZero() && !now.Add(pause).Before(s.deadline):
		return s.fail(fmt.Sprintf("no further attempt within activeDeadlineSeconds %d: %s", int64(want.Deadline/time.Second), why), now)
	}
	s.Phase, s.Message = v1beta1.ImagePhaseWaiting, fmt.Sprintf("%s; the next attempt is in %s", why, pause)
	s.notBefore = now.Add(pause)
	return s
}

func (s State) fail(message string, now time.Time) State {
	s.Phase, s.Message, s.Completed = v1beta1.ImagePhaseFailed, clip(message), now
	return s
}

// maxMessage bounds what a registry or runtime says, in bytes: a NodeImage may hold thousands of messages.
const maxMessage = 512

func clip(text string) string {
	if len(text) <= maxMessage {
		return text
	}
	cut := maxMessage
	for cut > 0 && text[cut]&0xC0 == 0x80 { // within a rune
		cut--
	}
	return text[:cut] + "…"
}

// Why an attempt was ended from our side.
var (
	errTimeout  = timeout("not pulled within timeoutSeconds")
	errDeadline = timeout("not pulled within activeDeadlineSeconds")
)

// timeout is a context.DeadlineExceeded in words of the API.
type timeout string

func (t timeout) Error() string        { return string(t) }
func (t timeout) Is(target error) bool { return target == context.DeadlineExceeded }

// explain puts our own reason in the place of an error that comes from it.
func explain(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return cause
	}
	return err
}
