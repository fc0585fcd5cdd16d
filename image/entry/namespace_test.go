package entry_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/image/entry"
)

// said is the status of a NodeImage that has pulled game:v1 for the namespace shop.
func said(version int64, phase v1beta1.ImagePullPhase, completed ...time.Time) v1beta1.NodeImageStatus {
	is := v1beta1.ImageNamespaceStatus{Namespace: "shop", Version: version, Phase: phase}
	tag := v1beta1.ImageTagStatus{Tag: "v1", Version: version, Phase: phase}
	for _, at := range completed {
		is.CompletionTime, tag.CompletionTime = new(metav1.NewTime(at)), new(metav1.NewTime(at))
	}
	tag.Namespaces = []v1beta1.ImageNamespaceStatus{is}
	return v1beta1.NodeImageStatus{ImageStatuses: map[string]v1beta1.ImageStatus{"game": {Tags: []v1beta1.ImageTagStatus{tag}}}}
}

func named(name string, change ...func(*v1beta1.ImagePullJob)) *v1beta1.ImagePullJob {
	return job(append(change, func(j *v1beta1.ImagePullJob) { j.Name, j.UID = name, types.UID(name) })...)
}

// A job joins the pull of its namespace that is under way. What has ended before it was created is no outcome for it.
func TestAJobJoinsOnlyAPullOfItsNamespaceThatHasNotEnded(t *testing.T) {
	t.Parallel()
	later := now.Add(time.Hour)
	for name, tt := range map[string]struct {
		status  v1beta1.NodeImageStatus
		version int64
		joined  bool // the policy is the more patient one, and the pull is as old as it was
	}{
		"nothing is known of it":     {v1beta1.NodeImageStatus{}, 0, true},
		"it waits":                   {said(0, v1beta1.ImagePhaseWaiting), 0, true},
		"it is being pulled":         {said(0, v1beta1.ImagePhasePulling), 0, true},
		"it was pulled":              {said(0, v1beta1.ImagePhaseSucceeded, now), 1, false},
		"it failed":                  {said(0, v1beta1.ImagePhaseFailed, now), 1, false},
		"another version failed":     {said(7, v1beta1.ImagePhaseFailed, now), 0, true},
		"another version was pulled": {said(7, v1beta1.ImagePhaseSucceeded, now), 0, true},
	} {
		first := named("first", func(j *v1beta1.ImagePullJob) { j.Spec.PullPolicy = &v1beta1.PullPolicy{BackoffLimit: new(int32(9))} })
		second := named("second", func(j *v1beta1.ImagePullJob) { j.Spec.PullPolicy = &v1beta1.PullPolicy{BackoffLimit: new(int32(1))} })
		var spec v1beta1.NodeImageSpec
		if !request(&spec, &v1beta1.NodeImageStatus{}, first, nil, now) || !request(&spec, &tt.status, second, nil, later) {
			t.Fatal("no room")
		}
		tag := spec.Images["game"].Tags[0]
		is := tag.Namespaces[0]
		backoff, created := int32(1), later
		if tt.joined {
			backoff, created = 9, now
		}
		if is.Version != tt.version || *is.PullPolicy.BackoffLimit != backoff || !is.CreatedAt.Time.Equal(created) {
			t.Errorf("%s: version %d, %d retries, created at %s", name, is.Version, *is.PullPolicy.BackoffLimit, is.CreatedAt)
		}
		if *tag.PullPolicy.BackoffLimit != backoff || tag.Version != tt.version || !tag.CreatedAt.Time.Equal(later) {
			t.Errorf("%s: the tag has version %d and %d retries, created at %s", name, tag.Version, *tag.PullPolicy.BackoffLimit, tag.CreatedAt)
		}
		want := []v1beta1.ImageJobVersion{{UID: first.UID}, {UID: second.UID, Version: tt.version}}
		if diff := cmp.Diff(want, is.Jobs); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// The daemon has not seen yet that the previous entry is gone: its end is not the end of the new one.
func TestAnEntryThatWasRemovedComesBackInAnotherVersion(t *testing.T) {
	t.Parallel()
	status := said(4, v1beta1.ImagePhaseFailed, now)
	var spec v1beta1.NodeImageSpec
	request(&spec, &status, job(), nil, now)
	tag := spec.Images["game"].Tags[0]
	if tag.Version != 5 || tag.Namespaces[0].Version != 5 || tag.Namespaces[0].Jobs[0].Version != 5 {
		t.Errorf("%+v", tag)
	}
}

// Others, such as a kruise-manager, write entries without namespaces, whose secrets are in the repository.
func TestWhatOthersNeedForARepositoryStays(t *testing.T) {
	t.Parallel()
	others := v1beta1.ReferenceObject{Namespace: "n", Name: "others"}
	own := v1beta1.ReferenceObject{Namespace: "n", Name: "own"}
	sandbox := &v1beta1.SandboxConfig{Labels: map[string]string{"of": "others"}}
	for name, tt := range map[string]struct {
		before  []v1beta1.ImageTagSpec
		secrets []v1beta1.ReferenceObject
		sandbox *v1beta1.SandboxConfig
	}{
		"an entry of others": {[]v1beta1.ImageTagSpec{{Tag: "v0"}}, []v1beta1.ReferenceObject{own, others}, sandbox},
		"entries of Refit": {
			[]v1beta1.ImageTagSpec{{Tag: "v0", Namespaces: []v1beta1.ImageNamespaceSpec{{Namespace: "shop", PullSecrets: []v1beta1.ReferenceObject{own}}}}},
			[]v1beta1.ReferenceObject{own}, nil,
		},
	} {
		spec := v1beta1.NodeImageSpec{Images: map[string]v1beta1.ImageSpec{"game": {
			PullSecrets: []v1beta1.ReferenceObject{others, own}, SandboxConfig: sandbox, Tags: tt.before,
		}}}
		request(&spec, &v1beta1.NodeImageStatus{}, job(), []v1beta1.ReferenceObject{own}, now)
		if diff := cmp.Diff(tt.secrets, spec.Images["game"].PullSecrets); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(tt.sandbox, spec.Images["game"].SandboxConfig); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// A pull that has ended stays until no job counts it any more, and then for five minutes, or a day for a job that never completes.
func TestAnEntryStaysForAsLongAsAJobCountsIt(t *testing.T) {
	t.Parallel()
	completed := func(j *v1beta1.ImagePullJob) { j.Status.CompletionTime = new(metav1.NewTime(now)) }
	never := func(j *v1beta1.ImagePullJob) { j.Spec.CompletionPolicy.Type = v1beta1.CompletionNever }
	for name, tt := range map[string]struct {
		jobs  []*v1beta1.ImagePullJob
		ended time.Duration // how long ago; negative: it has not
		left  int           // jobs of the entry
		again time.Duration // 0 for never
	}{
		"it counts a pull that has ended":               {[]*v1beta1.ImagePullJob{named("a")}, time.Hour, 1, 0},
		"it has completed too":                          {[]*v1beta1.ImagePullJob{named("a", completed)}, 4 * time.Minute, 1, time.Minute},
		"five minutes ago":                              {[]*v1beta1.ImagePullJob{named("a", completed)}, 5 * time.Minute, 0, 0},
		"it has completed without the pull":             {[]*v1beta1.ImagePullJob{named("a", completed)}, -1, 0, 0},
		"another counts it":                             {[]*v1beta1.ImagePullJob{named("a", completed), named("b")}, time.Hour, 2, 0},
		"and comes first":                               {[]*v1beta1.ImagePullJob{named("a"), named("b", completed)}, time.Hour, 2, 0},
		"another has not got it":                        {[]*v1beta1.ImagePullJob{named("a", completed), named("b")}, -1, 1, 0},
		"it never completes":                            {[]*v1beta1.ImagePullJob{named("a", never)}, 23 * time.Hour, 1, time.Hour},
		"it never completes, and a day has passed":      {[]*v1beta1.ImagePullJob{named("a", never)}, 24 * time.Hour, 0, 0},
		"it never completes, but another will":          {[]*v1beta1.ImagePullJob{named("a", never), named("b")}, 24 * time.Hour, 2, 0},
		"it never completes, and another has":           {[]*v1beta1.ImagePullJob{named("a", never), named("b", completed)}, 24 * time.Hour, 0, 0},
		"it never completes, and is being pulled again": {[]*v1beta1.ImagePullJob{named("a", never)}, -1, 1, 0},
	} {
		var spec v1beta1.NodeImageSpec
		for _, j := range tt.jobs {
			request(&spec, &v1beta1.NodeImageStatus{}, j, nil, now)
		}
		status := said(0, v1beta1.ImagePhasePulling)
		if tt.ended >= 0 {
			status = said(0, v1beta1.ImagePhaseSucceeded, now.Add(-tt.ended))
		}
		changed, again := prune(&spec, &status, among(tt.jobs...), now)
		left := 0
		if tags := spec.Images["game"].Tags; len(tags) > 0 {
			left = len(tags[0].OwnerReferences)
			if is := tags[0].Namespaces; len(is) != 1 || len(is[0].Jobs) != left {
				t.Errorf("%s: %+v", name, is)
			}
		}
		if left != tt.left || changed != (left != len(tt.jobs)) || again.IsZero() != (tt.again == 0) || tt.again != 0 && !again.Equal(now.Add(tt.again)) {
			t.Errorf("%s: %d jobs are left, changed %t, again at %s", name, left, changed, again)
		}
	}
}

// What another version of the pull says, or another namespace, does not end it.
func TestOnlyTheEndOfItsVersionEndsAPull(t *testing.T) {
	t.Parallel()
	completed := named("a", func(j *v1beta1.ImagePullJob) { j.Status.CompletionTime = new(metav1.NewTime(now)) })
	counts := named("b")
	for name, status := range map[string]v1beta1.NodeImageStatus{"another version": said(3, v1beta1.ImagePhaseSucceeded, now), "nothing": {}} {
		var spec v1beta1.NodeImageSpec
		request(&spec, &v1beta1.NodeImageStatus{}, completed, nil, now)
		request(&spec, &v1beta1.NodeImageStatus{}, counts, nil, now)
		prune(&spec, &status, among(completed, counts), now)
		if owners := spec.Images["game"].Tags[0].OwnerReferences; len(owners) != 1 || owners[0].UID != counts.UID {
			t.Errorf("%s: %+v", name, owners)
		}
	}
}

// A secret or a sandbox that a job brought goes with it, and the others of its namespace keep theirs.
func TestWhatOnlyAJobThatIsGoneNeededGoes(t *testing.T) {
	t.Parallel()
	first := named("first", func(j *v1beta1.ImagePullJob) {
		j.Spec.PullSecrets = []string{"both", "first"}
		j.Spec.SandboxConfig = &v1beta1.SandboxConfig{Labels: map[string]string{"of": "first"}}
		j.Spec.ImagePullPolicy = v1beta1.PullIfNotPresent
	})
	second := named("second", func(j *v1beta1.ImagePullJob) {
		j.Spec.PullSecrets = []string{"both"}
		j.Spec.ImagePullPolicy = v1beta1.PullAlways
	})
	var spec v1beta1.NodeImageSpec
	var status v1beta1.NodeImageStatus
	request(&spec, &status, first, secretsOf(first), now)
	request(&spec, &status, second, secretsOf(second), now)
	spec.Images["game"].Tags[0].Namespaces[0].Jobs[0].Version = 0
	is := func() v1beta1.ImageNamespaceSpec { return spec.Images["game"].Tags[0].Namespaces[0] }
	before := is()
	if len(before.PullSecrets) != 2 || before.SandboxConfig == nil || before.Version != 1 {
		t.Fatalf("%+v", before)
	}
	if changed, _ := prune(&spec, &status, among(first, second), now); changed {
		t.Errorf("%+v", is())
	}
	prune(&spec, &status, among(second), now)
	after := is()
	if len(after.PullSecrets) != 1 || after.PullSecrets[0].Name != entry.SecretCopy("shop", "both") || after.SandboxConfig != nil || after.Version != 1 {
		t.Errorf("%+v", after)
	}
	if diff := cmp.Diff([]v1beta1.ImageJobVersion{{UID: second.UID, Version: 1}}, after.Jobs); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
