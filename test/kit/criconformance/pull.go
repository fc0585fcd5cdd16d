package criconformance

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/refit-project/refit/cri"
)

// PullFault is what a registry does to a pull.
type PullFault string

// The faults.
const (
	PullWell         PullFault = "well"
	PullUnauthorized PullFault = "unauthorized" // 401
	PullMissing      PullFault = "missing"      // 404
	PullLimited      PullFault = "limited"      // 429
	PullAway         PullFault = "away"         // 503
	PullWrongDigest  PullFault = "wrong-digest" // another layer than the manifest names
	PullStalls       PullFault = "stalls"       // nothing comes after a part of the layer
)

// PullFixture is a runtime with a registry that it pulls from.
type PullFixture struct {
	Endpoint string // as cri.Config has it
	// Serve makes an image of its own that the registry serves with this fault, and returns what it is pulled by, without
	// a tag, and its digest.
	Serve func(t *testing.T, fault PullFault) (name, digest string)
}

// stallLimit is how long a pull that stalls may last.
const stallLimit = 2 * time.Second

// RunPulls runs the suite of pulls.
func RunPulls(t *testing.T, fixture PullFixture) {
	client, err := cri.New(cri.Config{Endpoint: fixture.Endpoint})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	for fault, want := range map[PullFault]error{
		PullWell: nil, PullUnauthorized: cri.ErrUnauthorized, PullMissing: cri.ErrNotFound, PullLimited: cri.ErrTooManyRequests,
		PullAway: errAny, PullWrongDigest: cri.ErrDigestMismatch, PullStalls: cri.ErrDeadline,
	} {
		t.Run(string(fault), func(t *testing.T) {
			t.Parallel()
			name, _ := fixture.Serve(t, fault)
			pullOnce(t, client, name+":v1", want)
		})
	}
	t.Run("by digest", func(t *testing.T) {
		t.Parallel()
		name, digest := fixture.Serve(t, PullWell)
		pullOnce(t, client, name+"@"+digest, nil)
	})
	t.Run("given up", func(t *testing.T) {
		t.Parallel()
		name, _ := fixture.Serve(t, PullStalls)
		ctx, cancel := context.WithCancel(t.Context())
		defer time.AfterFunc(stallLimit/2, cancel).Stop()
		begun := time.Now()
		if _, err := client.PullImage(ctx, cri.PullRequest{Image: name + ":v1"}); err == nil || time.Since(begun) > 2*stallLimit {
			t.Errorf("%v after %s", err, time.Since(begun))
		}
	})
}

// errAny stands for an error that is none of the sentinels.
var errAny = errors.New("any error")

// pullOnce pulls and looks whether the node has the image then.
func pullOnce(t *testing.T, client *cri.Client, reference string, want error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	if errors.Is(want, cri.ErrDeadline) {
		ctx, cancel = context.WithTimeout(t.Context(), stallLimit)
	}
	defer cancel()
	id, err := client.PullImage(ctx, cri.PullRequest{Image: reference})
	t.Logf("%q %v", id, err)
	switch {
	case want == nil && (err != nil || id == ""), want != nil && err == nil:
		t.Fatalf("got %q, %v; want %v", id, err, want)
	case want != nil && !errors.Is(want, errAny) && !errors.Is(err, want):
		t.Errorf("got %v, want %v", err, want)
	}
	found, err := client.ImageID(t.Context(), reference)
	if err != nil || found != id {
		t.Errorf("the node has %q, %v; pulled %q", found, err, id)
	}
}
