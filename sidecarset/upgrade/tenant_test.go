package upgrade_test

import (
	"testing"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/sidecarset/rollout"
)

// The owner of a pod may write any annotation of it. None of them keeps the rollout of a SidecarSet from its other pods.
func TestAnnotationsOfAPodHoldUpNoRollout(t *testing.T) {
	t.Parallel()
	t.Run("aborted, where nothing is upgraded hot", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, cold("log", "log:1"))
		w.image("log:2")
		w.pod.Annotations[v1beta1.AnnotationSidecarSetAborted] = `{"logs":"` + w.target.Hashes.Full + `"}`
		if v := w.judge(); v.State != rollout.Outdated {
			t.Errorf("%+v", v)
		}
	})
	t.Run("a record of the future", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, cold("log", "log:1"))
		w.pod.Annotations[v1beta1.AnnotationSidecarSetInPlaceUpdateState] = `{"logs":{"revision":"x","updateTimestamp":"2199-12-31T23:59:59Z",` +
			`"lastContainerStatuses":{"log":{"imageID":"sha256:log:1"}},"updateImages":true,"containerBatchesRecord":[{"timestamp":"2026-11-22T10:00:00Z","containers":["log"]}]}}` // the image that runs
		for i := range w.pod.Status.ContainerStatuses {
			w.pod.Status.ContainerStatuses[i].Image = "sha256:log:1" // as runtimes report it by another name
		}
		if v := w.judge(); v.InFlight {
			t.Errorf("%+v", v)
		}
	})
	t.Run("created with the newest sidecars", func(t *testing.T) {
		t.Parallel()
		if v := newWorld(t, cold("log", "log:1")).judge(); !v.Original {
			t.Errorf("%+v", v)
		}
		if v := newWorld(t, cold("log", "log:1", hot)).judge(); v.Original { // hot upgrades leave no record
			t.Errorf("%+v", v)
		}
	})
}
