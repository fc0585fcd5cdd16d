package workload_test

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
)

func TestOwnersPartitionIsKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "StatefulSet", 4)
	*w.statefulSet.Spec.UpdateStrategy.RollingUpdate.Partition = 2
	w.edit(image("app:2"))
	w.rounds(40)
	if w.pods["web-1"].Spec.Containers[0].Image != "app:1" || w.pods["web-2"].Spec.Containers[0].Image != "app:2" || w.created > 0 {
		t.Errorf("images %v, %d pods created", w.images(), w.created)
	}
	if got := *w.statefulSet.Spec.UpdateStrategy.RollingUpdate.Partition; got != 2 {
		t.Errorf("partition %d at the end", got)
	}
	if got, want := w.message(), "all pods have the template, apart from 2 that the partition of the StatefulSet excludes"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	w.bad["app:2"] = true // the pods with it crash some time after the update
	w.rounds(2)
	if w.unavailable() == 0 || w.progressing() != "True Completed" {
		t.Errorf("%d pods are unavailable after the update, %s", w.unavailable(), w.progressing())
	}
}

// A template that is not possible in place is carried out by the StatefulSet's controller. Pods that the partition excludes keep an older
// one, which has no effect on later updates of the others.
func TestExcludedPodsDoNotMakeLaterUpdatesImpossible(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "StatefulSet", 4)
	*w.statefulSet.Spec.UpdateStrategy.RollingUpdate.Partition = 2
	w.edit(moreEnvironment)
	w.rounds(20)
	if w.created != 2 || w.progressing() != "True Completed" || w.policy.Status.UpdatedPods != 2 {
		t.Fatalf("%d pods replaced, %d updated, %s", w.created, w.policy.Status.UpdatedPods, w.progressing())
	}
	w.edit(image("app:2"))
	w.rounds(40)
	if w.created != 2 || w.images()["app:2"] != 2 || w.progressing() != "True Completed" || w.policy.Status.UpdatedPods != 2 {
		t.Errorf("%d pods replaced, want the 2 of before; images %v, %d updated, %s", w.created, w.images(), w.policy.Status.UpdatedPods, w.progressing())
	}
}

// Kubernetes counts the pods that a partition excludes from the first ordinal.
func TestOwnersPartitionCountsFromTheFirstOrdinal(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "StatefulSet", 3)
	w.statefulSet.Spec.Ordinals = &appsv1.StatefulSetOrdinals{Start: 5}
	clear(w.pods)
	w.rounds(3)
	w.created = 0
	*w.statefulSet.Spec.UpdateStrategy.RollingUpdate.Partition = 1
	if said := w.previewed(image("app:2")); !slices.Equal(said, []string{"web-7: map[app:app:2]", "web-6: map[app:app:2]", "web-5: excluded"}) {
		t.Errorf("preview %v", said)
	}
	w.edit(image("app:2"))
	w.rounds(40)
	if w.pods["web-5"].Spec.Containers[0].Image != "app:1" || w.images()["app:2"] != 2 || w.created > 0 || w.progressing() != "True Completed" {
		t.Errorf("images %v, %d pods created, %s", w.images(), w.created, w.progressing())
	}
}
