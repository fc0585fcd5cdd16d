package e2e_test

import (
	"encoding/json"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
)

// The sidecar of these tests, and the hashes that kruise-manager of OpenKruise 07169cfac gives a SidecarSet that has it alone.
const (
	plainSidecar = `{"name":"log","image":"docker.io/library/busybox:1.36","command":["sh","-c","trap exit TERM; while true; do sleep 1; done"],` +
		`"ports":[{"containerPort":8080}],"livenessProbe":{"exec":{"command":["true"]}}}`
	plainHash             = "98v9wz457bzzwcx5f77f48vddzz79485wv998cc4d2v95w86x574f8b528w49446"
	plainHashWithoutImage = "dx45z498f7zzb9746zwv4494vxv548c444f447wd22z6v54z276vcvwf4w8577xc"
)

// untouched expects that a change of the SidecarSet is none for its pods.
func (s *sidecarSet) untouched(n int, before []*corev1.Pod, what string) {
	s.t.Helper()
	set := s.reaches(what, completed(int32(n)))
	if set.Status.NotUpgradablePods != 0 || reason(&set.Status, v1beta1.ConditionDegraded) == "NotUpgradable" {
		s.t.Errorf("%s: status %+v", what, set.Status)
	}
	for i, pod := range s.all(n) {
		s.same(before[i])
		if c := status(pod, "log"); c.RestartCount != 0 || c.ContainerID != status(before[i], "log").ContainerID {
			s.t.Errorf("%s: the sidecar of %s was restarted", what, pod.Name)
		}
		if condition(pod, v1beta1.ConditionSidecarSetUpgradable) == corev1.ConditionFalse {
			s.t.Errorf("%s: %s is not upgradable", what, pod.Name)
		}
	}
}

func TestDefaultsWrittenIntoASidecarSetRollNothing(t *testing.T) {
	t.Parallel()
	const n = 2
	s := &sidecarSet{fixture: newFixture(t)}
	s.name = s.sidecarSet("log", "containers: ["+plainSidecar+"]").Name
	s.knows(selected("log", s.podOf("probe", shell("app", obedient))), "log")
	for i := range n {
		s.start(selected("log", s.podOf(fmt.Sprintf("web-%d", i), shell("app", obedient))))
	}
	set := s.reaches("to be completed", completed(n))
	if set.Annotations[v1beta1.AnnotationSidecarSetHash] != plainHash || set.Annotations[v1beta1.AnnotationSidecarSetHashWithoutImage] != plainHashWithoutImage {
		t.Errorf("annotations %v, and not OpenKruise's hashes", set.Annotations)
	}
	before := s.all(n)
	s.changes(`{"spec":{"containers":[` + plainSidecar[:len(plainSidecar)-1] + `,"imagePullPolicy":"IfNotPresent"}]}}`)
	s.untouched(n, before, "after a default was written")
	// As kubectl apply, Helm and Argo CD write: the list as it is in the manifest, without what was stored.
	s.changes(`{"spec":{"containers":[` + plainSidecar + `],"updateStrategy":null,"revisionHistoryLimit":null}}`)
	s.untouched(n, before, "after the manifest was written")
	if set := s.get(t.Context()); set.Spec.Containers[0].ImagePullPolicy != corev1.PullIfNotPresent || set.Spec.RevisionHistoryLimit == nil {
		t.Errorf("stored without defaults: %+v", set.Spec)
	}
	s.setsImage(newImage)
	s.reaches("to be rolled out", completed(n))
	if got := s.images(n); got[newImage] != n {
		t.Errorf("images %v", got)
	}
}

// Pods and SidecarSet are as OpenKruise has stored them; the first write after the change is the manifest.
func TestSidecarSetAsOpenKruiseStoresItIsTakenOver(t *testing.T) {
	t.Parallel()
	const n = 2
	s := newSidecarSet(t, n, func(spec *v1beta1.SidecarSetSpec) {
		spec.Containers[0] = v1beta1.SidecarContainer{}
		if err := json.Unmarshal([]byte(plainSidecar), &spec.Containers[0]); err != nil {
			t.Fatal(err)
		}
	})
	set := s.reaches("to count the pods as updated", completed(n))
	before := s.all(n)
	for _, pod := range before {
		var carried map[string]struct{ Hash string }
		s.check(json.Unmarshal([]byte(pod.Annotations[v1beta1.AnnotationSidecarSetHash]), &carried), "read annotation")
		if carried[s.name].Hash != plainHash {
			t.Errorf("%s has the hash %s", pod.Name, carried[s.name].Hash)
		}
	}
	if set.Annotations[v1beta1.AnnotationSidecarSetHash] != plainHash {
		t.Errorf("annotations %v", set.Annotations)
	}
	s.changes(`{"spec":{"containers":[` + plainSidecar + `]}}`)
	s.untouched(n, before, "after the manifest was written")
	s.setsImage(newImage)
	s.reaches("to be rolled out", completed(n))
}
