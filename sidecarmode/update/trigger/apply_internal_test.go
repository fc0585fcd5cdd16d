package trigger

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/refit-project/refit/hotupdate"
	"github.com/refit-project/refit/sidecarmode/plugin"
)

// refusing refuses one version for good.
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

// Every event of a ConfigMap offers its content, also one that changes nothing but an annotation.
func TestRefusedContentIsNotTriedAgainBeforeItHasChanged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		updater := &refusing{version: "bad"}
		trigger := New(Config{}, Deps{Updater: updater, Logger: slog.New(slog.DiscardHandler)})
		ctx, cancel := context.WithCancel(t.Context())
		changes := make(chan content)
		var applying sync.WaitGroup
		applying.Go(func() { _ = plugin.Safely(func() error { trigger.apply(ctx, changes); return nil }) })
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
