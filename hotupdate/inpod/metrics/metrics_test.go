package metrics_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/refit-project/refit/hotupdate"
	"github.com/refit-project/refit/hotupdate/inpod/metrics"
)

// Alerts are made of these.
func TestUpdatesAreCountedByHowTheyEnded(t *testing.T) {
	t.Parallel()
	const (
		total, last, success = "refit_sidecar_hot_updates_total", "refit_sidecar_hot_update_last_successful", "refit_sidecar_hot_update_last_success_timestamp_seconds"
		altered              = "refit_sidecar_hot_update_altered_files_total"
	)
	fails := errors.New("no")
	for name, tt := range map[string]struct {
		res hotupdate.Result
		err error
		how string
		// files that were changed by others
		altered float64
	}{
		"accepted":                       {hotupdate.Result{Changed: true}, nil, "accepted", 0},
		"unchanged":                      {hotupdate.Result{}, nil, "unchanged", 0},
		"mended":                         {hotupdate.Result{Changed: true, Mended: []string{"a", "b"}}, nil, "accepted", 2},
		"refused":                        {hotupdate.Result{}, fails, "failed", 0},
		"failed":                         {hotupdate.Result{}, &hotupdate.Failure{Err: fails}, "failed", 0},
		"rolled back":                    {hotupdate.Result{Changed: true}, &hotupdate.Failure{Err: fails, RolledBack: true}, "rolled_back", 0},
		"with files that cannot be kept": {hotupdate.Result{}, &hotupdate.Failure{Err: fmt.Errorf("a: %w", hotupdate.ErrTampered)}, "failed", 1},
	} {
		registry := prometheus.NewRegistry()
		m := metrics.New()
		if err := m.Register(registry); err != nil {
			t.Fatal(err)
		}
		if err := metrics.New().Register(registry); err == nil {
			t.Error("two plugins have the same metrics")
		}
		began := float64(time.Now().Unix())
		m.Observe(time.Second, hotupdate.Result{Changed: true}, nil)
		m.Observe(time.Second, tt.res, tt.err)
		got := values(t, registry)
		want := map[string]float64{total + " accepted": 1}
		want[total+" "+tt.how]++
		for _, how := range []string{"accepted", "unchanged", "failed", "rolled_back"} {
			if got[total+" "+how] != want[total+" "+how] {
				t.Errorf("%s: %v", name, got)
			}
		}
		ok := 1.0
		if tt.err != nil {
			ok = 0
		}
		if got[last] != ok || got[altered] != tt.altered || got[success] < began || got["refit_sidecar_hot_update_duration_seconds"] != 2 {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestWhatCouldNotBeRestoredIsAMetricUntilItIs(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	m := metrics.New()
	if err := m.Register(registry); err != nil {
		t.Fatal(err)
	}
	for _, is := range []bool{false, true, true, false} {
		m.Unrestored(is)
		want := map[bool]float64{true: 1}[is]
		if diff := cmp.Diff(want, values(t, registry)["refit_sidecar_hot_update_unrestored"]); diff != "" {
			t.Errorf("%t (-want +got):\n%s", is, diff)
		}
	}
}

// values returns the values of counters and gauges, and the counts of histograms, by name and label.
func values(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			name := family.GetName()
			for _, label := range metric.GetLabel() {
				name += " " + label.GetValue()
			}
			all[name] = metric.GetCounter().GetValue() + metric.GetGauge().GetValue() + float64(metric.GetHistogram().GetSampleCount())
		}
	}
	return all
}
