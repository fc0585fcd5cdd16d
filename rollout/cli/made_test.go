package cli_test

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/internal/console"
	"github.com/refit-project/refit/internal/table"
	"github.com/refit-project/refit/test/kit/golden"
)

// endAtNoon carries out what was created at a time that does not change, with managedFields as the API server sets them.
func endAtNoon(outcome crr.Outcome) func(client.Object) {
	return func(object client.Object) {
		noon := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
		object.SetCreationTimestamp(metav1.NewTime(noon.Add(-time.Second)))
		object.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "refit-manager", Operation: metav1.ManagedFieldsOperationUpdate}})
		switch o := object.(type) {
		case *v1beta1.ContainerRecreateRequest:
			crr.Complete(&o.Status, outcome, 1, noon)
		case *v1alpha1.RestartRollout:
			o.Status = v1alpha1.RestartRolloutStatus{ObservedGeneration: 1, RolloutPods: v1alpha1.RolloutPods{MatchedPods: 2}, RestartedPods: 2, CompletionTime: new(metav1.NewTime(noon))}
			meta.SetStatusCondition(&o.Status.Conditions, metav1.Condition{
				Type: v1alpha1.ConditionSucceeded, Status: metav1.ConditionTrue, Reason: "Restarted", Message: "2 of 2 pods", LastTransitionTime: metav1.NewTime(noon),
			})
		}
	}
}

// What is printed is the object at the end, and nothing else: progress and errors go elsewhere.
func TestObjectThatIsMadeIsPrintedAtTheEnd(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		of, format   string
		outcome      crr.Outcome
		begins       bool // the restart has not ended
		dryRun       bool
		timeout      time.Duration
		withoutWait  bool
		wantExitCode int
	}{
		"pod.yaml":                 {of: "pod/web-abc-1", format: "yaml"},
		"pod.json":                 {of: "pod/web-abc-1", format: "json"},
		"pod-failed.yaml":          {of: "pod/web-abc-1", format: "yaml", outcome: crr.Outcome{Reason: crr.ReasonStopFailed, Message: "runtime is gone"}, wantExitCode: 1},
		"pod-not-in-time.yaml":     {of: "pod/web-abc-1", format: "yaml", begins: true, timeout: 50 * time.Millisecond, wantExitCode: 124},
		"pod-not-waited.yaml":      {of: "pod/web-abc-1", format: "yaml", begins: true, withoutWait: true},
		"workload.yaml":            {of: "deployment/web", format: "yaml"},
		"workload-not-waited.json": {of: "deployment/web", format: "json", begins: true, withoutWait: true},
		"workload-dry-run.yaml":    {of: "deployment/web", format: "yaml", dryRun: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			if !tc.begins {
				f.finish = endAtNoon(tc.outcome)
			}
			var printed bytes.Buffer
			f.config.Made = table.Made{Out: &printed, Format: tc.format}
			f.config.Wait, f.config.DryRun, f.config.Timeout = !tc.withoutWait, tc.dryRun, tc.timeout
			if err := run(t, f, tc.of); console.ExitCode(err) != tc.wantExitCode {
				t.Fatalf("exit code %d: %v", console.ExitCode(err), err)
			}
			golden.Check(t, filepath.Join("testdata", name), printed.String())
			if strings.Contains(printed.String(), "managedFields") {
				t.Error("managedFields are printed")
			}
		})
	}
}
