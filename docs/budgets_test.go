package docs_test

import (
	"os/exec"
	"strings"
	"testing"
)

// budgets lists what a package may not depend on, and why.
var budgets = map[string]map[string]string{
	"cmd/refit-daemon": {
		"k8s.io/client-go/kubernetes": "the typed clientset costs every node 10 MiB", "sigs.k8s.io/controller-runtime": "the daemon's caches are narrower",
		"k8s.io/cri-client": "it costs memory on every node", "github.com/containerd/containerd/v2": "its client costs every node 6 MB; the API of the content service has what is needed",
	},
	"cmd/refit-sidecar": {
		"k8s.io/client-go/kubernetes": "every serverless pod pays for it", "sigs.k8s.io/controller-runtime": "every serverless pod pays for it",
		"k8s.io/cri-client": "no runtime socket", "k8s.io/cri-api": "no runtime socket", "github.com/containerd": "every serverless pod pays for it",
	},
	"api/...": {"sigs.k8s.io/controller-runtime": "the sidecar imports the API types", "k8s.io/client-go": "the sidecar imports the API types"},
}

func TestDependencyBudgets(t *testing.T) {
	t.Parallel()
	for pattern, forbidden := range budgets {
		command := exec.CommandContext(t.Context(), "go", "list", "-deps", modulePath+pattern)
		command.Dir = ".."
		out, err := command.Output()
		if err != nil {
			t.Fatalf("list what %s depends on: %v", pattern, err)
		}
		for _, dependency := range strings.Fields(string(out)) {
			for path, why := range forbidden {
				if within(dependency, path) {
					t.Errorf("%s depends on %s: %s", pattern, dependency, why)
				}
			}
			if within(dependency, "k8s.io/kubernetes") {
				t.Errorf("%s depends on %s: small facts of kubelet are re-implemented", pattern, dependency)
			}
		}
	}
}
