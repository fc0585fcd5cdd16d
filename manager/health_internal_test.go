package manager

import (
	"errors"
	"net/http"
	"strings"
	"testing"
)

// A user who cannot create requests finds the pods not ready, and the reason. A manager without webhooks has no certificate: it would
// never be ready, and its PodDisruptionBudget would block the drain of its node.
func TestReadyWhenTheWebhooksCanBeCalled(t *testing.T) {
	t.Parallel()
	passes := func(*http.Request) error { return nil }
	expired := func(*http.Request) error { return errors.New("certificate has expired") }
	down := func(*http.Request) error { return errors.New("connection refused") }
	for name, tc := range map[string]struct {
		config                Config
		certificate, webhooks func(*http.Request) error
		want                  string // of the error; empty: ready
	}{
		"all is well":           {Config{ContainerRecreateRequests: true}, passes, passes, ""},
		"certificate expired":   {Config{ContainerRecreateRequests: true}, expired, passes, "certificate: certificate has expired"},
		"of RestartRollouts":    {Config{RestartRollouts: true}, expired, passes, "has expired"},
		"of SidecarSets":        {Config{SidecarSets: true}, expired, passes, "has expired"},
		"of pods":               {Config{PodProbes: true, ServerlessProbes: true}, expired, passes, "has expired"},
		"of workloads":          {Config{InPlaceUpdates: true, HoldWebhook: true}, expired, passes, "has expired"},
		"held by a policy":      {Config{InPlaceUpdates: true}, expired, down, ""},
		"no workloads":          {Config{Images: true, HoldWebhook: true}, expired, down, ""},
		"webhooks not served":   {Config{ContainerRecreateRequests: true}, passes, down, "webhooks: connection refused"},
		"there are no webhooks": {Config{PodProbes: true, Images: true}, expired, down, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := &health{}
			h.ready(readinessChecks(tc.config, tc.certificate, tc.webhooks))
			if err := h.check(nil); (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}
