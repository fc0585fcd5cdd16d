package revision_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/sidecarset/defaults"
	"github.com/refit-project/refit/sidecarset/revision"
)

// history is the revisions of one SidecarSet, with its controller.
type history struct {
	t   *testing.T
	set *v1beta1.SidecarSet
	all []*appsv1.ControllerRevision
}

func newHistory(t *testing.T) *history {
	t.Helper()
	set := &v1beta1.SidecarSet{Spec: *spec(container("log", "log:1"))}
	set.Name, set.UID = "logs", "uid"
	return &history{t: t, set: set}
}

// apply does for an image what the controller does.
func (h *history) apply(image string) *appsv1.ControllerRevision {
	h.t.Helper()
	h.set.Spec.Containers[0].Image = image
	latest, change, err := revision.Plan(h.set, "refit-system", h.all)
	if err != nil {
		h.t.Fatal(err)
	}
	switch {
	case change.Create != nil:
		h.all = append(h.all, change.Create)
	case change.Update != nil:
		for i := range h.all {
			if h.all[i].Name == change.Update.Name {
				h.all[i] = change.Update
			}
		}
	}
	return latest
}

func TestRevisionsAreCreatedReusedAndNumberedAgain(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	first := h.apply("log:1")
	if first.Revision != 1 || first.Namespace != "refit-system" || first.Labels[v1beta1.LabelSidecarSetName] != "logs" || first.OwnerReferences[0].Kind != "SidecarSet" {
		t.Errorf("%+v", first)
	}
	if first.Annotations[v1beta1.AnnotationSidecarSetHash] != revision.HashesOf(&h.set.Spec).Full {
		t.Errorf("annotations %v", first.Annotations)
	}
	h.apply("log:1")
	h.apply("log:2")
	back := h.apply("log:1")
	if len(h.all) != 2 || back.Name != first.Name || back.Revision != 3 {
		t.Errorf("%d revisions; the one rolled back to is %s, number %d", len(h.all), back.Name, back.Revision)
	}
	restored, err := revision.Restore(back)
	if err != nil || restored.Containers[0].Image != "log:1" {
		t.Errorf("%+v, %v", restored, err)
	}
}

func TestSpecIsRestored(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	h.set.Spec.InitContainers = []v1beta1.SidecarContainer{container("mesh", "mesh:1", native)}
	h.set.Spec.InitContainers[0].Unknown = v1beta1.UnknownFields{"futureField": []byte(`{"a":"b"}`)}
	h.set.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	h.set.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "s"}}
	h.set.Spec.PatchPodMetadata = []v1beta1.SidecarSetPatchPodMetadata{{Annotations: map[string]string{"a": "b"}}}
	h.set.Spec.PodVolumes = []string{"data"}
	h.set.Spec.PatchContainers = []v1beta1.SidecarSetPatchContainer{{NameRegex: "app", Env: []corev1.EnvVar{{Name: "A", Value: "b"}}}}
	restored, err := revision.Restore(h.apply("log:1"))
	if err != nil {
		t.Fatal(err)
	}
	want := defaults.Normal(&h.set.Spec)
	want.UpdateStrategy, want.RevisionHistoryLimit = v1beta1.SidecarSetUpdateStrategy{}, nil // which no revision keeps
	if diff := cmp.Diff(want, restored); diff != "" {
		t.Errorf("-spec +restored:\n%s", diff)
	}
	if revision.HashesOf(restored) != revision.HashesOf(&h.set.Spec) {
		t.Error("the restored spec has another hash")
	}
	broken := &appsv1.ControllerRevision{Data: runtime.RawExtension{Raw: []byte(`{"spec":1}`)}}
	if _, err := revision.Restore(broken); !errors.Is(err, revision.ErrMalformed) {
		t.Errorf("error %v", err)
	}
}

// A revision stored by an earlier version of Refit lacks the defaults. It is the revision of the spec with them too.
func TestDefaultsMakeNoNewRevision(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	first := h.apply("log:1")
	first.Data.Raw = []byte(`{"spec":{"$patch":"replace","volumes":null,"containers":[{"name":"log","image":"log:1","resources":{},"upgradeStrategy":{},"shareVolumePolicy":{}}],` +
		`"initContainers":null,"imagePullSecrets":null,"patchPodMetadata":null}}`)
	h.all[0].Data.Raw = first.Data.Raw
	defaults.Complete(&h.set.Spec)
	latest, change, err := revision.Plan(h.set, "refit-system", h.all)
	if err != nil || change.Create != nil || change.Update != nil || latest.Name != first.Name {
		t.Errorf("%v, %+v, %v", latest, change, err)
	}
	h.set.Spec.Containers[0].ImagePullPolicy = corev1.PullAlways
	if _, change, _ := revision.Plan(h.set, "refit-system", h.all); change.Create == nil {
		t.Error("another pull policy is taken for the default")
	}
}

func TestCollidingNamesDiffer(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	first := h.apply("log:1")
	h.set.Status.CollisionCount = new(int32(1))
	again, err := revision.New(h.set, "refit-system", 1)
	if err != nil || again.Name == first.Name {
		t.Errorf("%s, %v", again.Name, err)
	}
}

func TestOldRevisionsExpireUnlessUsed(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	h.set.Spec.RevisionHistoryLimit = new(int32(2))
	names := map[string]string{}
	for _, image := range []string{"log:1", "log:2", "log:3", "log:4", "log:5"} {
		h.set.Spec.CustomVersion = "v" + image[4:]
		names[image] = h.apply(image).Name
	}
	h.set.Spec.InjectionStrategy.Revision = &v1beta1.SidecarSetInjectRevision{CustomVersion: new("v2")}
	expired := revision.Expired(h.set, h.all, func(name string) bool { return name == names["log:1"] })
	if len(expired) != 2 || expired[0].Name != names["log:3"] || expired[1].Name != names["log:4"] {
		t.Errorf("%d expire", len(expired))
	}
	h.set.Spec.InjectionStrategy.Revision = &v1beta1.SidecarSetInjectRevision{RevisionName: new(names["log:4"])}
	if expired := revision.Expired(h.set, h.all, func(string) bool { return false }); len(expired) != 3 || expired[2].Name == names["log:4"] {
		t.Errorf("%d expire", len(expired))
	}
	h.set.Spec.InjectionStrategy.Revision.RevisionName = new("none")
	if revision.Pinned(h.set, h.all) != nil {
		t.Error("a revision that does not exist is pinned")
	}
}

func TestCustomVersionIsSetOnARevisionThatExists(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	h.apply("log:1")
	h.set.Labels = map[string]string{v1beta1.LabelSidecarSetCustomVersion: "one"}
	if got := h.apply("log:1").Labels[v1beta1.LabelSidecarSetCustomVersion]; got != "one" || len(h.all) != 1 {
		t.Errorf("custom version %q of %d revisions", got, len(h.all))
	}
}

// Defect 21 of the peer: every revision has a copy of all annotations, among them what kubectl apply has written, as large as the SidecarSet.
func TestRevisionsHaveNoAnnotationsOfTheUser(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	h.set.Annotations = map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "{}"}
	if got := h.apply("log:1").Annotations; len(got) != 2 || got[v1beta1.AnnotationSidecarSetHash] == "" || got[v1beta1.AnnotationSidecarSetHashWithoutImage] == "" {
		t.Errorf("annotations %v, want the two hashes", got)
	}
}

func TestNothingIsWrittenForASpecThatHasItsRevision(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	h.set.Labels = map[string]string{"team": "a"}
	first := h.apply("log:1")
	if first.Labels["team"] != "a" || first.Labels[v1beta1.LabelSidecarSetName] != "logs" {
		t.Errorf("labels %v", first.Labels)
	}
	if latest, change, err := revision.Plan(h.set, "refit-system", h.all); err != nil || change.Create != nil || change.Update != nil || latest.Name != first.Name {
		t.Errorf("%s, %+v, %v", latest.Name, change, err)
	}
	// As another client writes it: the same JSON with other white space.
	var text bytes.Buffer
	if err := json.Indent(&text, h.all[0].Data.Raw, "", "  "); err != nil {
		t.Fatal(err)
	}
	h.all[0].Data.Raw = text.Bytes()
	if _, change, _ := revision.Plan(h.set, "refit-system", h.all); change.Create != nil || change.Update != nil {
		t.Errorf("white space makes a new revision: %+v", change)
	}
	h.all[0].Data.Raw = []byte("broken")
	if _, change, _ := revision.Plan(h.set, "refit-system", h.all); change.Create == nil {
		t.Error("an unreadable revision counts as the revision of the spec")
	}
}

func TestRollbackWritesTheRevisionAgain(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	h.apply("log:1")
	h.apply("log:2")
	slices.Reverse(h.all) // a cache keeps no order
	h.set.Spec.Containers[0].Image = "log:1"
	_, change, err := revision.Plan(h.set, "refit-system", h.all)
	if err != nil || change.Update == nil || change.Update.Revision != 3 {
		t.Errorf("%+v, %v", change, err)
	}
	h.all[0].Labels, h.all[1].Labels = nil, nil
	h.set.Spec.Containers[0].Image, h.set.Spec.CustomVersion = "log:2", "two"
	_, change, err = revision.Plan(h.set, "refit-system", h.all)
	if err != nil || change.Update == nil || change.Update.Revision != 2 || change.Update.Labels[v1beta1.LabelSidecarSetCustomVersion] != "two" {
		t.Errorf("%+v, %v", change, err)
	}
	if h.all[0].Labels != nil {
		t.Error("the revision of the cache was changed")
	}
}

func TestTheNewestOfACustomVersionIsPinned(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	h.set.Spec.CustomVersion = "stable"
	h.apply("log:1")
	newest := h.apply("log:2")
	h.set.Spec.CustomVersion = "other"
	h.apply("log:3")
	h.set.Spec.InjectionStrategy.Revision = &v1beta1.SidecarSetInjectRevision{RevisionName: new(""), CustomVersion: new("stable")}
	for range 2 {
		if got := revision.Pinned(h.set, h.all); got == nil || got.Name != newest.Name {
			t.Errorf("pinned %v", got)
		}
		slices.Reverse(h.all)
	}
	h.set.Spec.InjectionStrategy.Revision.CustomVersion = new("")
	if got := revision.Pinned(h.set, h.all); got != nil {
		t.Errorf("pinned %s without a version", got.Name)
	}
}

func TestAsManyRevisionsAsTheLimitAreKept(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	for i := range 12 {
		h.apply(fmt.Sprintf("log:%02d", i))
		expired := revision.Expired(h.set, h.all, func(string) bool { return false })
		if want := max(0, len(h.all)-10); len(expired) != want {
			t.Errorf("%d of %d expire, want %d", len(expired), len(h.all), want)
		}
	}
	slices.Reverse(h.all)
	if expired := revision.Expired(h.set, h.all, func(string) bool { return false }); len(expired) != 2 || expired[0].Revision != 1 {
		t.Errorf("not the oldest: %+v", expired)
	}
}

// Commands choose a revision by its number, so no two of one history may have the same.
func TestRevisionsAreNumberedOnAfterOldOnesHaveExpired(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	h.set.Spec.RevisionHistoryLimit = new(int32(2))
	for i := range 4 {
		latest := h.apply(fmt.Sprintf("log:%d", i))
		if latest.Revision != int64(i+1) {
			t.Errorf("revision %d has the number %d", i+1, latest.Revision)
		}
		for _, expired := range revision.Expired(h.set, h.all, func(string) bool { return false }) {
			h.all = slices.DeleteFunc(h.all, func(r *appsv1.ControllerRevision) bool { return r.Name == expired.Name })
		}
	}
}
