package entry_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
)

// The entry has what the job says, and the defaults of kruise-manager for the rest.
func TestEntryHasWhatTheJobAsksFor(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		job  func(*v1beta1.ImagePullJob)
		want v1beta1.ImageTagPullPolicy
	}{
		"nothing said": {
			func(*v1beta1.ImagePullJob) {},
			v1beta1.ImageTagPullPolicy{TimeoutSeconds: new(int32(600)), BackoffLimit: new(int32(3)), TTLSecondsAfterFinished: new(int32(300))},
		},
		"an empty policy": {
			func(j *v1beta1.ImagePullJob) { j.Spec.PullPolicy = &v1beta1.PullPolicy{} },
			v1beta1.ImageTagPullPolicy{TimeoutSeconds: new(int32(600)), BackoffLimit: new(int32(3)), TTLSecondsAfterFinished: new(int32(300))},
		},
		"all said": {
			func(j *v1beta1.ImagePullJob) {
				j.Spec.PullPolicy = &v1beta1.PullPolicy{TimeoutSeconds: new(int32(60)), BackoffLimit: new(int32(0))}
				j.Spec.CompletionPolicy.ActiveDeadlineSeconds = new(int64(90))
			},
			v1beta1.ImageTagPullPolicy{
				TimeoutSeconds: new(int32(60)), BackoffLimit: new(int32(0)), TTLSecondsAfterFinished: new(int32(300)), ActiveDeadlineSeconds: new(int64(90)),
			},
		},
		"never complete": {
			func(j *v1beta1.ImagePullJob) { j.Spec.CompletionPolicy.Type = v1beta1.CompletionNever },
			v1beta1.ImageTagPullPolicy{
				TimeoutSeconds: new(int32(600)), BackoffLimit: new(int32(3)), TTLSecondsAfterFinished: new(int32(86400)), ActiveDeadlineSeconds: new(int64(1800)),
			},
		},
		"never complete, long timeout": {
			func(j *v1beta1.ImagePullJob) {
				j.Spec.CompletionPolicy.Type = v1beta1.CompletionNever
				j.Spec.PullPolicy = &v1beta1.PullPolicy{TimeoutSeconds: new(int32(3600))}
			},
			v1beta1.ImageTagPullPolicy{
				TimeoutSeconds: new(int32(3600)), BackoffLimit: new(int32(3)), TTLSecondsAfterFinished: new(int32(86400)), ActiveDeadlineSeconds: new(int64(3600)),
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := job(tt.job, func(j *v1beta1.ImagePullJob) {
				j.Spec.ImagePullPolicy = v1beta1.PullAlways
				j.Spec.SandboxConfig = &v1beta1.SandboxConfig{Labels: map[string]string{"app": "game"}}
			})
			secret, other := v1beta1.ReferenceObject{Namespace: "n", Name: "s"}, v1beta1.ReferenceObject{Namespace: "n", Name: "other"}
			var spec v1beta1.NodeImageSpec
			if !request(&spec, &v1beta1.NodeImageStatus{}, j, []v1beta1.ReferenceObject{secret}, now) ||
				!request(&spec, &v1beta1.NodeImageStatus{}, j, []v1beta1.ReferenceObject{secret, other}, now) {
				t.Fatal("no room")
			}
			entry := spec.Images["game"]
			if diff := cmp.Diff(tt.want, *entry.Tags[0].PullPolicy); diff != "" {
				t.Error(diff)
			}
			owner := corev1.ObjectReference{APIVersion: "apps.kruise.io/v1beta1", Kind: "ImagePullJob", Namespace: "shop", Name: "j", UID: "job"}
			if diff := cmp.Diff([]corev1.ObjectReference{owner, owner}, entry.Tags[0].OwnerReferences); diff != "" {
				t.Error(diff)
			}
			if len(entry.Tags) != 1 || entry.Tags[0].Tag != "v1" || entry.Tags[0].Version != 0 || entry.Tags[0].ImagePullPolicy != v1beta1.PullAlways || !entry.Tags[0].CreatedAt.Time.Equal(now) {
				t.Errorf("%+v", entry.Tags)
			}
			if diff := cmp.Diff([]v1beta1.ReferenceObject{secret, other}, entry.PullSecrets); diff != "" {
				t.Error(diff)
			}
			if entry.SandboxConfig == j.Spec.SandboxConfig || entry.SandboxConfig.Labels["app"] != "game" {
				t.Errorf("%+v", entry.SandboxConfig)
			}
		})
	}
}

// A NodeImage has a bounded number of images; another tag of one that it has is none more.
func TestFullNodeImageTakesNoFurtherImage(t *testing.T) {
	t.Parallel()
	spec := v1beta1.NodeImageSpec{Images: map[string]v1beta1.ImageSpec{}}
	for i := range v1beta1.MaxNodeImages {
		spec.Images[fmt.Sprintf("app%d", i)] = v1beta1.ImageSpec{Tags: []v1beta1.ImageTagSpec{{Tag: "v1"}}}
	}
	of := func(name string) *v1beta1.ImagePullJob {
		return job(func(j *v1beta1.ImagePullJob) { j.Spec.Image = name })
	}
	if request(&spec, &v1beta1.NodeImageStatus{}, of("more:v1"), nil, now) || len(spec.Images) != v1beta1.MaxNodeImages {
		t.Errorf("%d images", len(spec.Images))
	}
	if !request(&spec, &v1beta1.NodeImageStatus{}, of("app7:v2"), nil, now) || len(spec.Images["app7"].Tags) != 2 {
		t.Errorf("%+v", spec.Images["app7"])
	}
	if request(&spec, &v1beta1.NodeImageStatus{}, of("a b"), nil, now) {
		t.Error("a malformed image is taken")
	}
}

// A second job for an image that is being pulled waits for that pull; one for an image that was pulled before has it pulled again.
func TestVersionRisesOnlyWhenThePullBeforeIsOver(t *testing.T) {
	t.Parallel()
	for phase, want := range map[v1beta1.ImagePullPhase]int64{
		v1beta1.ImagePhaseWaiting: 4, v1beta1.ImagePhasePulling: 4, v1beta1.ImagePhaseSucceeded: 5, v1beta1.ImagePhaseFailed: 5,
	} {
		spec := v1beta1.NodeImageSpec{Images: map[string]v1beta1.ImageSpec{"game": {Tags: []v1beta1.ImageTagSpec{{Tag: "v1", Version: 4}}}}}
		status := v1beta1.NodeImageStatus{ImageStatuses: map[string]v1beta1.ImageStatus{"game": {Tags: []v1beta1.ImageTagStatus{{Tag: "v1", Version: 4, Phase: phase}}}}}
		if request(&spec, &status, job(), nil, now); spec.Images["game"].Tags[0].Version != want {
			t.Errorf("%s: version %d, want %d", phase, spec.Images["game"].Tags[0].Version, want)
		}
		status.ImageStatuses["game"].Tags[0].Version = 3 // about an older one
		spec.Images["game"].Tags[0].Version = 4
		if request(&spec, &status, job(), nil, now); spec.Images["game"].Tags[0].Version != 4 {
			t.Errorf("%s of an older version: version %d, want 4", phase, spec.Images["game"].Tags[0].Version)
		}
	}
}

// Entries that somebody else has written, as a kruise-manager, are removed by their time to live alone.
func TestPruneReturnsWhenTheNextEntryExpires(t *testing.T) {
	t.Parallel()
	tag := func(name string, ttl int32) v1beta1.ImageTagSpec {
		return v1beta1.ImageTagSpec{Tag: name, PullPolicy: &v1beta1.ImageTagPullPolicy{TTLSecondsAfterFinished: &ttl}}
	}
	ended := func(name string, ago time.Duration) v1beta1.ImageTagStatus {
		at := metav1.NewTime(now.Add(-ago))
		return v1beta1.ImageTagStatus{Tag: name, Phase: v1beta1.ImagePhaseSucceeded, CompletionTime: &at}
	}
	renewed := tag("again", 60)
	renewed.Version = 2 // what has ended is the version before
	spec := v1beta1.NodeImageSpec{Images: map[string]v1beta1.ImageSpec{"game": {
		PullSecrets: []v1beta1.ReferenceObject{{Namespace: "n", Name: "others"}}, SandboxConfig: &v1beta1.SandboxConfig{Labels: map[string]string{"of": "others"}},
		Tags: []v1beta1.ImageTagSpec{tag("over", 60), tag("later", 600), tag("soon", 90), tag("pulling", 1), renewed, {Tag: "for-ever"}},
	}}}
	status := v1beta1.NodeImageStatus{ImageStatuses: map[string]v1beta1.ImageStatus{"game": {Tags: []v1beta1.ImageTagStatus{
		ended("over", time.Minute), ended("later", time.Minute), ended("soon", time.Minute), {Tag: "pulling", Phase: v1beta1.ImagePhasePulling}, ended("again", time.Hour), ended("for-ever", time.Hour),
	}}}}
	nobody := func(corev1.ObjectReference) *v1beta1.ImagePullJob { return nil }
	changed, again := prune(&spec, &status, nobody, now)
	var left []string
	for _, tag := range spec.Images["game"].Tags {
		left = append(left, tag.Tag)
	}
	if got := strings.Join(left, " "); !changed || got != "later soon pulling again for-ever" || !again.Equal(now.Add(30*time.Second)) {
		t.Errorf("changed %t, left %q, again at %s", changed, got, again)
	}
	if changed, _ := prune(&spec, &status, nobody, now); changed || len(spec.Images["game"].PullSecrets) != 1 || spec.Images["game"].SandboxConfig == nil {
		t.Errorf("changed %t again: %+v", changed, spec.Images["game"])
	}
}

// One of two jobs for an image ends: the entry stays for the other, and names it alone.
func TestEntryStaysForTheOtherJob(t *testing.T) {
	t.Parallel()
	first, second := job(), job(func(j *v1beta1.ImagePullJob) { j.Name, j.UID = "k", "other" })
	var spec v1beta1.NodeImageSpec
	var status v1beta1.NodeImageStatus
	request(&spec, &status, first, nil, now)
	request(&spec, &status, second, nil, now)
	if changed, _ := prune(&spec, &status, among(first, second), now); changed {
		t.Error("changed while both jobs run")
	}
	if changed, _ := prune(&spec, &status, among(second), now); !changed || len(spec.Images) != 1 {
		t.Errorf("changed %t, the first job is gone; %+v", changed, spec)
	}
	if owners := spec.Images["game"].Tags[0].OwnerReferences; len(owners) != 1 || owners[0].UID != "other" {
		t.Errorf("%+v", owners)
	}
	made := job(func(j *v1beta1.ImagePullJob) { j.UID = "recreated under its name" })
	spec.Images["game"].Tags[0].OwnerReferences[0].UID = "job"
	found := func(corev1.ObjectReference) *v1beta1.ImagePullJob { return made }
	if changed, _ := prune(&spec, &status, found, now); !changed || len(spec.Images) != 0 {
		t.Errorf("changed %t; the entry is kept for another job of the name", changed)
	}
}
