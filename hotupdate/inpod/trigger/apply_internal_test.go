package trigger

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refit-project/refit/hotupdate"
	"github.com/refit-project/refit/plugin"
)

// refusing refuses one version permanently.
type refusing struct {
	version   string
	asked     []string
	delivered string
}

func (r *refusing) Delivered(string) string { return r.delivered }

func (r *refusing) Apply(_ context.Context, request hotupdate.Request) (bool, error) {
	r.asked = append(r.asked, request.Version)
	if request.Version == r.version {
		return false, errors.New("precheck failed")
	}
	r.delivered = request.TriggerDigest
	return false, nil
}

// Every event of a ConfigMap delivers its content, even if only an annotation has changed.
func TestRefusedContentIsNotTriedAgainBeforeItHasChanged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		updater := &refusing{version: "bad"}
		trigger := New(Config{}, Deps{Updater: updater, Logger: slog.New(slog.DiscardHandler)})
		ctx, cancel := context.WithCancel(t.Context())
		changes := make(chan content)
		var applying sync.WaitGroup
		applying.Go(func() { _ = plugin.Safely(nil, "hot_update", func() error { trigger.apply(ctx, changes); return nil }) })
		for _, version := range []string{"bad", "bad", "good", "good", "bad", "bad"} {
			changes <- content{version: version}
			synctest.Wait()
		}
		cancel()
		applying.Wait()
		if diff := cmp.Diff([]string{"bad", "good", "bad"}, updater.asked); diff != "" {
			t.Errorf("tried (-want +got):\n%s", diff)
		}
	})
}

// failing always fails with a transient error.
type failing struct{ asked []time.Duration }

func (f *failing) Delivered(string) string { return "" }

func (f *failing) Apply(context.Context, hotupdate.Request) (bool, error) {
	f.asked = append(f.asked, time.Duration(time.Now().UnixNano()))
	return true, errors.New("the server does not respond")
}

// Content that waits for its next attempt is delivered again by each new list of the watch. That does not restart its
// attempts.
func TestContentThatWaitsForItsNextAttemptIsNotTriedEarlier(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		updater := &failing{}
		trigger := New(Config{}, Deps{Updater: updater, Logger: slog.New(slog.DiscardHandler)})
		ctx, cancel := context.WithCancel(t.Context())
		changes := make(chan content)
		var applying sync.WaitGroup
		applying.Go(func() { _ = plugin.Safely(nil, "hot_update", func() error { trigger.apply(ctx, changes); return nil }) })
		began := time.Duration(time.Now().UnixNano())
		for range 1700 { // 14 min 10 s
			changes <- content{version: "v1"}
			time.Sleep(500 * time.Millisecond)
		}
		cancel()
		applying.Wait()
		var at []time.Duration
		for _, when := range updater.asked {
			at = append(at, when-began)
		}
		want := []time.Duration{0, time.Second, 3 * time.Second, 7 * time.Second, 15 * time.Second, 31 * time.Second, 63 * time.Second, 127 * time.Second, 255 * time.Second, 511 * time.Second, 811 * time.Second}
		if diff := cmp.Diff(want, at); diff != "" {
			t.Errorf("tried at (-want +got):\n%s", diff)
		}
	})
}
