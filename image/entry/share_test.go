package entry_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/image"
	"github.com/refit-project/refit/image/entry"
)

// Its copy must be a Secret of another name for each of them, and of a name that the API server takes.
func TestNamesOfCopiesOfSecrets(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, of := range [][2]string{
		{"shop", "registry"}, {"bar", "registry"}, {"shop", "other"}, {"a", "b-c"}, {"a-b", "c"},
		{"shop", strings.Repeat("s", 199) + "." + strings.Repeat("t", 53)}, {"shop", strings.Repeat("s", 199) + "-" + strings.Repeat("t", 53)},
	} {
		name := entry.SecretCopy(of[0], of[1])
		prefix := strings.TrimRight(of[1][:min(len(of[1]), 200)], ".-") + "-"
		if seen[name] || name != entry.SecretCopy(of[0], of[1]) || !strings.HasPrefix(name, prefix) || len(name) != len(prefix)+12 {
			t.Errorf("%v: %s", of, name)
		}
		seen[name] = true
	}
}

// What a kruise-manager has asked for is no job's: an entry that nobody owns gets the policy of the first job.
func TestAJobTakesOverAnEntryThatNobodyOwns(t *testing.T) {
	t.Parallel()
	spec := v1beta1.NodeImageSpec{Images: map[string]v1beta1.ImageSpec{"game": {Tags: []v1beta1.ImageTagSpec{{
		Tag: "v1", Version: 4, ImagePullPolicy: v1beta1.PullIfNotPresent, PullPolicy: &v1beta1.ImageTagPullPolicy{BackoffLimit: new(int32(9)), TimeoutSeconds: new(int32(9000))},
	}}}}}
	request(&spec, &v1beta1.NodeImageStatus{}, job(func(j *v1beta1.ImagePullJob) { j.Spec.ImagePullPolicy = v1beta1.PullAlways }), nil, now)
	tag := spec.Images["game"].Tags[0]
	if tag.Version != 4 || tag.ImagePullPolicy != v1beta1.PullAlways || *tag.PullPolicy.BackoffLimit != 3 || *tag.PullPolicy.TimeoutSeconds != 600 {
		t.Errorf("%+v, %+v", tag, tag.PullPolicy)
	}
}

// A policy that somebody has written without limits ends no pull: it is the most patient one.
func TestAnEntryWithoutAPolicyHasNoLimits(t *testing.T) {
	t.Parallel()
	var spec v1beta1.NodeImageSpec
	request(&spec, &v1beta1.NodeImageStatus{}, named("a"), nil, now)
	spec.Images["game"].Tags[0].PullPolicy = nil
	request(&spec, &v1beta1.NodeImageStatus{}, named("b"), nil, now)
	if diff := cmp.Diff(&v1beta1.ImageTagPullPolicy{}, spec.Images["game"].Tags[0].PullPolicy); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	request(&spec, &v1beta1.NodeImageStatus{}, named("c"), nil, now)
	if got := spec.Images["game"].Tags[0].PullPolicy; *got.TimeoutSeconds != 600 || *got.BackoffLimit != 3 || got.ActiveDeadlineSeconds != nil || got.TTLSecondsAfterFinished != nil {
		t.Errorf("%+v", got)
	}
}

// A job that never completes and one that does share a pull: it has as long as the former, and is forgotten as late.
func TestAPullIsAsPatientAsTheJobThatNeverCompletes(t *testing.T) {
	t.Parallel()
	never := named("never", func(j *v1beta1.ImagePullJob) { j.Spec.CompletionPolicy.Type = v1beta1.CompletionNever })
	ends := named("ends", func(j *v1beta1.ImagePullJob) { j.Spec.CompletionPolicy.ActiveDeadlineSeconds = new(int64(60)) })
	for _, jobs := range [][]*v1beta1.ImagePullJob{{never, ends}, {ends, never}} {
		var spec v1beta1.NodeImageSpec
		for _, j := range jobs {
			request(&spec, &v1beta1.NodeImageStatus{}, j, nil, now)
		}
		policy := spec.Images["game"].Tags[0].Namespaces[0].PullPolicy
		if *policy.TTLSecondsAfterFinished != 86400 || *policy.ActiveDeadlineSeconds != 1800 {
			t.Errorf("%+v", policy)
		}
	}
}

// What one namespace does with an image is no reason to keep it for another.
func TestTheTimeToLiveOfAPullIsThatOfItsNamespace(t *testing.T) {
	t.Parallel()
	completed := func(j *v1beta1.ImagePullJob) { j.Status.CompletionTime = new(metav1.NewTime(now)) }
	shop, bar := named("shop", completed), named("bar", func(j *v1beta1.ImagePullJob) {
		j.Namespace, j.Spec.CompletionPolicy.Type = "bar", v1beta1.CompletionNever
	})
	var spec v1beta1.NodeImageSpec
	for _, j := range []*v1beta1.ImagePullJob{shop, bar} {
		request(&spec, &v1beta1.NodeImageStatus{}, j, nil, now)
	}
	states := map[image.Target]image.State{}
	for _, want := range image.Wanted(spec) {
		states[want.Target] = image.State{Phase: v1beta1.ImagePhaseSucceeded, Completed: now.Add(-10 * time.Minute)}
	}
	status := image.Status(spec, states)
	changed, again := prune(&spec, &status, among(shop, bar), now)
	if left := count(&v1beta1.NodeImage{Spec: spec}); !changed || left["shop"] != 0 || left["bar"] != 1 || !again.Equal(now.Add(24*time.Hour-10*time.Minute)) {
		t.Errorf("changed %t, %v are left, again at %s", changed, left, again)
	}
}

// Entries that an earlier version of Refit has written do not say which version a job has asked for: it is the present one.
func TestVersionsOfJobsAreNotedWhereTheyAreNotKnown(t *testing.T) {
	t.Parallel()
	var spec v1beta1.NodeImageSpec
	j := named("a")
	request(&spec, &v1beta1.NodeImageStatus{}, j, nil, now)
	is := &spec.Images["game"].Tags[0].Namespaces[0]
	is.Version, is.Jobs = 3, nil
	changed, _ := prune(&spec, &v1beta1.NodeImageStatus{}, among(j), now)
	if diff := cmp.Diff([]v1beta1.ImageJobVersion{{UID: "a", Version: 3}}, spec.Images["game"].Tags[0].Namespaces[0].Jobs); !changed || diff != "" {
		t.Errorf("changed %t (-want +got):\n%s", changed, diff)
	}
}

// A sandbox requested by a job becomes the sandbox of the repository, instead of the one that others have requested before.
func TestTheSandboxOfAJobComesBeforeThatOfOthers(t *testing.T) {
	t.Parallel()
	spec := v1beta1.NodeImageSpec{Images: map[string]v1beta1.ImageSpec{"game": {
		SandboxConfig: &v1beta1.SandboxConfig{Labels: map[string]string{"of": "others"}}, Tags: []v1beta1.ImageTagSpec{{Tag: "v0"}},
	}}}
	asks := job(func(j *v1beta1.ImagePullJob) {
		j.Spec.SandboxConfig = &v1beta1.SandboxConfig{Labels: map[string]string{"of": "job"}}
	})
	request(&spec, &v1beta1.NodeImageStatus{}, asks, nil, now)
	if got := spec.Images["game"].SandboxConfig; got == nil || got.Labels["of"] != "job" {
		t.Errorf("%+v", got)
	}
}

// The owners of an entry that stays keep their order: a NodeImage that has not changed is not written.
func TestOwnersThatStayKeepTheirOrder(t *testing.T) {
	t.Parallel()
	var spec v1beta1.NodeImageSpec
	var jobs []*v1beta1.ImagePullJob
	for i, namespace := range []string{"c", "a", "b", "a", "c"} {
		j := named(string(rune('p'+i)), func(j *v1beta1.ImagePullJob) { j.Namespace = namespace })
		jobs = append(jobs, j)
		request(&spec, &v1beta1.NodeImageStatus{}, j, nil, now)
	}
	left := []*v1beta1.ImagePullJob{jobs[0], jobs[1], jobs[2], jobs[4]}
	prune(&spec, &v1beta1.NodeImageStatus{}, among(left...), now)
	var got []types.UID
	for _, o := range spec.Images["game"].Tags[0].OwnerReferences {
		got = append(got, o.UID)
	}
	if diff := cmp.Diff([]types.UID{"p", "q", "r", "t"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if changed, _ := prune(&spec, &v1beta1.NodeImageStatus{}, among(left...), now); changed {
		t.Error("changed again")
	}
}
