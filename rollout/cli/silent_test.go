package cli_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/console"
)

// With manager.features.restartRollouts=false the command waited without a word.
func TestRestartThatNothingProcessesIsExplained(t *testing.T) {
	t.Parallel()
	for of, feature := range map[string]string{"deployment/web": "RestartRollouts (manager.features.restartRollouts", "pod/web-abc-1": "ContainerRecreateRequests (manager.features.containerRecreateRequests"} {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t)
			f.config.Timeout = 30 * time.Second
			if err := run(t, f, of); console.ExitCode(err) != console.ExitTimeout || strings.Count(f.out.String(), feature) != 1 {
				t.Errorf("%s: %v\n%s", of, err, f.out.String())
			}
			seen := newFixture(t)
			seen.config.Timeout = 30 * time.Second
			seen.finish = func(o client.Object) {
				switch o := o.(type) {
				case *v1alpha1.RestartRollout:
					o.Status.ObservedGeneration = 1
				case *v1beta1.ContainerRecreateRequest:
					o.Labels = map[string]string{v1beta1.LabelNodeName: "node-1"} // its pod may have an earlier request
				}
			}
			if err := run(t, seen, of); console.ExitCode(err) != console.ExitTimeout || strings.Contains(seen.out.String(), "manager.features") {
				t.Errorf("%s: %v\n%s", of, err, seen.out.String())
			}
		})
	}
}
