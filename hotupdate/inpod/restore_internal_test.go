package inpod

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/refit-project/refit/internal/kube/ownpod"
	"github.com/refit-project/refit/plugin"
)

// A missing role may come back, for example if someone replaces its RoleBinding: the sidecar retries until the time is
// over.
func TestForbiddenIsTriedAgainUntilTheTimeIsOver(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		outage, refusals int
		took             time.Duration
		want             error
	}{
		"the API server has just started":      {0, 2, 3 * time.Second, nil},
		"the API server starts while we retry": {6, 2, 32 * time.Second, nil},
		"the role comes back":                  {0, 20, 92 * time.Second, nil},
		"the role is missing":                  {0, 1000, 300 * time.Second, ownpod.ErrForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := &Plugin{host: plugin.Host{Logger: slog.New(slog.DiscardHandler)}}
				tries, began := 0, time.Now()
				ctx, cancel := context.WithDeadline(t.Context(), began.Add(300*time.Second))
				defer cancel()
				err := p.retry(ctx, "read", maxReadRetry, func() error {
					if tries++; tries <= tc.outage {
						return errors.New("connection refused")
					}
					if tries <= tc.outage+tc.refusals {
						return fmt.Errorf("get ConfigMap: %w", ownpod.ErrForbidden)
					}
					return nil
				})
				if !errors.Is(err, tc.want) || time.Since(began) != tc.took {
					t.Errorf("%v after %d tries and %s", err, tries, time.Since(began))
				}
			})
		})
	}
}

// kubelet restarts a sidecar whose startup probe has failed, and the program would never start.
func TestStartupProbeOfTheExampleOutlastsARestore(t *testing.T) {
	t.Parallel()
	manifest, err := os.ReadFile("../../deploy/sidecar/examples/pod-native.yaml")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`periodSeconds: 1\n\s+failureThreshold: (\d+)`).FindSubmatch(manifest)
	if found == nil {
		t.Fatal("no start-up probe")
	}
	const lookAtPod = 10 // seconds before the plugins start
	if n, err := strconv.Atoi(string(found[1])); err != nil || n <= defaultWait+lookAtPod {
		t.Errorf("%d s, %v; want more than %d s", n, err, defaultWait+lookAtPod)
	}
}
