package chaos_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/refit-project/refit/hack/install"
	"github.com/refit-project/refit/test/chaos"
	"github.com/refit-project/refit/test/chaos/records"
)

// TestSmallDose makes each kind of fault happen on the cluster of a checkout. `make chaos` does so for longer.
func TestSmallDose(t *testing.T) {
	if os.Getenv("REFIT_CHAOS") == "" {
		t.Skip("set REFIT_CHAOS=1 and KUBECONFIG to break a cluster of test/cluster; make test does it on one of its own")
	}
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	state := filepath.Dir(os.Getenv("KUBECONFIG"))
	images, err := install.Pushed(filepath.Dir(state)) // the checkout whose images are in the cluster's registry
	if err != nil {
		t.Fatal(err)
	}
	pushed := func(name string) string {
		i := slices.IndexFunc(images, func(image string) bool { return strings.Contains(image, "/"+name+":") })
		if i < 0 {
			t.Fatalf("%s has not been pushed: hack/images.sh --extra testapp=test/e2e/testapp", name)
		}
		return images[i]
	}
	app, sidecar := pushed("testapp"), pushed("refit-sidecar")
	if err := install.Apply(t.Context(), install.Config{Root: root, Kubectl: filepath.Join(state, "bin", "kubectl"), Images: images}); err != nil {
		t.Fatal(err)
	}
	report, err := chaos.Run(t.Context(), chaos.Config{
		State: state, Image: app, Sidecar: sidecar, Records: filepath.Join(root, "dist", "chaos-small"),
		// So few that two slow processors are not always busy: then nothing is in time, and the judge cannot tell that from faults of Refit.
		Duration: time.Minute, Pods: 8, Rate: 0.3, Seed: 1, Out: t.Output(),
	})
	if err != nil {
		t.Fatal(err)
	}
	records.Print(t.Output(), report)
	for _, violation := range report.Violations {
		t.Error(violation)
	}
	for _, why := range report.Refused {
		t.Errorf("the run proves nothing: %s", why)
	}
}
