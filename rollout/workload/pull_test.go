package workload_test

import (
	"maps"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
)

// pulling has nodes pull images before updates.
func (w *world) pulling() {
	w.registry.on, w.registry.has, w.registry.fails, w.registry.daemons = true, map[string]bool{}, map[string]string{}, map[string]bool{}
	for _, pod := range w.pods {
		w.registry.daemons[pod.Spec.NodeName] = true
	}
}

func (w *world) message() string {
	return meta.FindStatusCondition(w.policy.Status.Conditions, v1alpha1.ConditionProgressing).Message
}

const missing = "1 of 3 nodes failed, for example a: manifest unknown: not found"

func TestImagesAreOnAllNodesBeforeTheFirstContainerStops(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		w := newWorld(t, kind, 3)
		w.pulling()
		w.registry.stuck = true
		w.policy.Spec.ProgressDeadlineSeconds = new(int32(300))
		w.edit(func(t *corev1.PodTemplateSpec) {
			t.Spec.Containers[0].Image, t.Spec.Containers[1].Image = "app:2", "log:2"
		})
		w.rounds(5)
		if w.progressing() != "True PullingImages" || w.message() != "0 of 3 nodes have app:2; 0 of 3 nodes have log:2" || len(w.restarts) > 0 {
			t.Errorf("%s: %s: %s, restarts %v", kind, w.progressing(), w.message(), w.restarts)
		}
		for _, job := range w.registry.jobs {
			job.Status.Desired = 0 // nobody has looked at the jobs yet
		}
		if w.look(-1); w.message() != "0 of 3 nodes have app:2; 0 of 3 nodes have log:2" {
			t.Errorf("%s: new jobs: %s", kind, w.message())
		}
		if len(w.registry.jobs) != 2 {
			t.Fatalf("%s: %d jobs", kind, len(w.registry.jobs))
		}
		job := w.registry.jobs[0]
		if job.OwnerReferences[0].Kind != "InPlaceUpdatePolicy" || job.OwnerReferences[0].Name != "web" || job.Namespace != "shop" || job.Spec.ImagePullPolicy != v1beta1.PullIfNotPresent ||
			*job.Spec.CompletionPolicy.ActiveDeadlineSeconds != 300 || *job.Spec.PullPolicy.TimeoutSeconds != 300 {
			t.Errorf("%s: %+v", kind, job)
		}
		w.registry.stuck = false
		w.rounds(60)
		if w.progressing() != "True Completed" || w.images()["app:2"] != 3 || len(w.registry.unpulled) > 0 || len(w.registry.jobs) != 2 {
			t.Errorf("%s: %s, images %v, started without a pull %v, %d jobs", kind, w.progressing(), w.images(), w.registry.unpulled, len(w.registry.jobs))
		}
	}
}

// A canary may wait for days; the jobs are gone then.
func TestImagesArePulledOnceForAnUpdate(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "DaemonSet", 3)
	w.pulling()
	w.policy.Spec.Paused = false
	w.edit(image("app:2"))
	w.rounds(5)
	w.policy.Spec.Paused = true
	w.rounds(400)
	if len(w.registry.jobs) != 0 {
		t.Errorf("%d jobs after their time to live", len(w.registry.jobs))
	}
	w.policy.Spec.Paused = false
	w.rounds(20)
	if w.progressing() != "True Completed" || len(w.registry.jobs) != 0 || len(w.registry.unpulled) > 0 {
		t.Errorf("%s, %d jobs, started without a pull %v", w.progressing(), len(w.registry.jobs), w.registry.unpulled)
	}
}

func TestAnImageThatCannotBePulledStopsNothing(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		w := newWorld(t, kind, 3)
		w.pulling()
		w.registry.fails["app:2"] = missing
		w.edit(image("app:2"))
		w.rounds(20)
		if w.progressing() != "False ImagePullFailed" || !strings.Contains(w.message(), missing) || len(w.restarts) > 0 || w.images()["app:1"] != 3 {
			t.Errorf("%s: %s: %s, restarts %v, images %v", kind, w.progressing(), w.message(), w.restarts, w.images())
		}
		if !meta.IsStatusConditionTrue(w.policy.Status.Conditions, v1alpha1.ConditionStalled) {
			t.Errorf("%s: not stalled", kind)
		}
		w.registry.stuck = true // the pull is tried again
		w.rounds(310)
		if w.progressing() != "False ImagePullFailed" || len(w.registry.jobs) != 1 {
			t.Errorf("%s: %s while the pull is tried again, %d jobs", kind, w.progressing(), len(w.registry.jobs))
		}
		w.registry.stuck = false
		delete(w.registry.fails, "app:2")
		w.rounds(40)
		if w.progressing() != "True Completed" || w.images()["app:2"] != 3 || len(w.registry.unpulled) > 0 {
			t.Errorf("%s: %s, images %v, started without a pull %v", kind, w.progressing(), w.images(), w.registry.unpulled)
		}
	}
}

func TestAnotherTemplateEndsAFailedPull(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "StatefulSet", 3)
	w.pulling()
	w.registry.fails["app:2"] = missing
	w.edit(image("app:2"))
	w.rounds(10)
	w.registry.stuck = true
	w.edit(image("app:3"))
	w.rounds(3)
	if w.progressing() != "True PullingImages" {
		t.Errorf("%s", w.progressing())
	}
	w.edit(image("app:1"))
	if w.rounds(10); w.progressing() != "True Completed" || len(w.restarts) > 0 {
		t.Errorf("back: %s, restarts %v", w.progressing(), w.restarts)
	}
}

func TestFailurePolicyAppliesToPulls(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		w := newWorld(t, kind, 3)
		w.pulling()
		w.policy.Spec.FailurePolicy = v1alpha1.UpdateFailureUndo
		w.registry.fails["app:2"] = missing
		w.edit(image("app:2"))
		w.rounds(30)
		if w.progressing() != "True Completed" || w.template().Spec.Containers[0].Image != "app:1" || len(w.restarts) > 0 || w.meta().Labels[v1alpha1.LabelHeld] != "" {
			t.Errorf("%s, Undo: %s, template %s, restarts %v", kind, w.progressing(), w.template().Spec.Containers[0].Image, w.restarts)
		}
		w.policy.Spec.FailurePolicy = v1alpha1.UpdateFailureContinue
		w.registry.fails["app:3"] = missing
		w.edit(image("app:3"))
		if w.rounds(60); w.images()["app:3"] != 3 {
			t.Errorf("%s, Continue: %s, images %v", kind, w.progressing(), w.images())
		}
	}
}

// What says nothing about the image does not hold an update up, and is said.
func TestPodsAreUpdatedWhereImagesCannotBePulledBefore(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		set   func(*world)
		limit int // rounds
		said  string
	}{
		"not asked for":     {func(w *world) { w.policy.Spec.PrePullPolicy = v1alpha1.PrePullNever }, 30, ""},
		"no manager for it": {func(w *world) { w.registry.on = false }, 30, "off"},
		"no daemon":         {func(w *world) { clear(w.registry.daemons) }, 30, "3 of 3 nodes have no daemon"},
		"one without a daemon": {func(w *world) {
			maps.DeleteFunc(w.registry.daemons, func(n string, _ bool) bool { return n == "node-web-1" })
		}, 40, "1 of 3 nodes have no daemon"},
		"other credentials": {func(w *world) {
			w.registry.fails["app:2"] = "pull access denied, repository does not exist or may require authorization"
		}, 40, "pull access denied"},
		"not pulled by kubelet": {func(w *world) {
			for _, pod := range w.pods {
				pod.Spec.Containers[0].ImagePullPolicy = corev1.PullNever
			}
		}, 30, ""},
		"nodes that do not answer": {func(w *world) { w.registry.stuck = true }, 600, "app:2"},
	} {
		w := newWorld(t, "StatefulSet", 3)
		w.pulling()
		tt.set(w)
		w.edit(image("app:2"))
		said := ""
		for range tt.limit {
			if w.rounds(1); w.last.NotPulled != "" {
				said = w.last.NotPulled
			}
		}
		if w.images()["app:2"] != 3 || w.progressing() != "True Completed" || !strings.Contains(said, tt.said) || (said == "") != (tt.said == "") {
			t.Errorf("%s: images %v, %s, said %q", name, w.images(), w.progressing(), said)
		}
	}
}

// The node of a pod that is not ready may be unreachable, and the pod has nothing to lose.
func TestPullsAreOnTheNodesOfPodsThatServe(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "StatefulSet", 3)
	w.pulling()
	pod := w.pods["web-1"]
	pod.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "registry"}}
	w.pods["web-0"].Spec.Containers[0].ImagePullPolicy = corev1.PullAlways
	w.bad["broken"] = true
	w.pods["web-2"].Spec.Containers[1].Image = "broken"
	w.rounds(3)
	w.edit(image("app:2"))
	w.rounds(2)
	if len(w.registry.jobs) != 1 {
		t.Fatalf("%d jobs", len(w.registry.jobs))
	}
	spec := w.registry.jobs[0].Spec
	if got := strings.Join(spec.Selector.Names, " "); got != "node-web-0 node-web-1" || strings.Join(spec.PullSecrets, " ") != "registry" || spec.ImagePullPolicy != v1beta1.PullAlways {
		t.Errorf("nodes %s, secrets %v, policy %s", got, spec.PullSecrets, spec.ImagePullPolicy)
	}
}

func TestAPullIsWaitedForUntilItsDeadline(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "DaemonSet", 2)
	w.pulling()
	w.registry.stuck = true
	w.edit(image("app:2"))
	w.rounds(530)
	if len(w.restarts) > 0 || w.progressing() != "True PullingImages" {
		t.Errorf("%s, restarts %v", w.progressing(), w.restarts)
	}
	job := w.registry.jobs[0]
	if limit := time.Duration(*job.Spec.CompletionPolicy.ActiveDeadlineSeconds) * time.Second; limit != 9*time.Minute {
		t.Errorf("deadline %s", limit)
	}
}

// A daemon that is updated, or dies, is not ready for some seconds. It continues the pull when it has started again.
func TestAPullIsWaitedForWhileADaemonRestarts(t *testing.T) {
	t.Parallel()
	for name, restarting := range map[string]func(w *world){
		"one daemon":  func(w *world) { delete(w.registry.daemons, "node-web-1") },
		"all daemons": func(w *world) { clear(w.registry.daemons) },
	} {
		w := newWorld(t, "StatefulSet", 3)
		w.pulling()
		w.registry.stuck = true
		w.edit(image("app:2"))
		w.rounds(3)
		daemons := maps.Clone(w.registry.daemons)
		restarting(w)
		w.rounds(5)
		if w.progressing() != "True PullingImages" || len(w.restarts) > 0 {
			t.Errorf("%s: %s while it restarts, restarts %v", name, w.progressing(), w.restarts)
		}
		w.registry.daemons, w.registry.stuck = daemons, false
		w.rounds(40)
		if w.progressing() != "True Completed" || len(w.registry.unpulled) > 0 || len(w.registry.jobs) != 1 {
			t.Errorf("%s: %s, started without a pull %v, %d jobs", name, w.progressing(), w.registry.unpulled, len(w.registry.jobs))
		}
	}
}
