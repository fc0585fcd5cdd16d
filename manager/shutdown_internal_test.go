package manager

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"
)

// After the grace period the process is killed with its Lease, and another replica leads 20 s later.
func TestTheManagerEndsWithinTheGracePeriodOfItsPod(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile(filepath.Join("..", "deploy", "manager", "30-deployment.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(content), "\n---\n")
	var deployment appsv1.Deployment
	if err := yaml.UnmarshalStrict([]byte(first), &deployment); err != nil {
		t.Fatal(err)
	}
	pod := deployment.Spec.Template.Spec
	if pod.TerminationGracePeriodSeconds == nil || pod.Containers[0].Lifecycle == nil {
		t.Fatal("the pod has no grace period and preStop hook of its own")
	}
	preStop := time.Duration(pod.Containers[0].Lifecycle.PreStop.Sleep.Seconds) * time.Second
	if grace := time.Duration(*pod.TerminationGracePeriodSeconds) * time.Second; preStop+shutdownTimeout >= grace {
		t.Errorf("%s of preStop and %s of shutdown in a grace period of %s", preStop, shutdownTimeout, grace)
	}
}
