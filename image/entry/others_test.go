package entry_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/image"
	"github.com/refit-project/refit/image/entry"
)

// What a kruise-manager has asked for is of no namespace: it takes the most room, and makes none.
func TestEntriesThatNobodyOwnsMakeNoRoom(t *testing.T) {
	t.Parallel()
	node := &v1beta1.NodeImage{Spec: v1beta1.NodeImageSpec{Images: map[string]v1beta1.ImageSpec{}}}
	for i := range v1beta1.MaxNodeImages - 20 {
		node.Spec.Images[fmt.Sprint("kruise", i)] = v1beta1.ImageSpec{Tags: []v1beta1.ImageTagSpec{{Tag: "v1"}}}
	}
	fill(node, 20, func(i int) *v1beta1.ImagePullJob { return of("mallory", fmt.Sprintf("app%d:v1", i)) })
	if !entry.Request(node, of("shop", "more:v1"), nil, now) {
		t.Fatal("no room")
	}
	if got := count(node); got[""] != v1beta1.MaxNodeImages-20 || got["mallory"] != 19 || got["shop"] != 1 {
		t.Errorf("%v", got)
	}
}

// Whoever may write NodeImages may claim room for a namespace that has no pull of which any could be made.
func TestANamespaceThatHasNothingToRemoveMakesNoRoom(t *testing.T) {
	t.Parallel()
	node := &v1beta1.NodeImage{}
	entry.Request(node, of("bar", "app:v1"), nil, now)
	repository := node.Spec.Images["app"]
	evil := v1beta1.ImageNamespaceSpec{Namespace: "evil"}
	for i := range v1beta1.MaxImageSecrets {
		evil.PullSecrets = append(evil.PullSecrets, v1beta1.ReferenceObject{Namespace: "kruise-daemon-config", Name: fmt.Sprint("s", i)})
	}
	repository.Tags[0].Namespaces = append(repository.Tags[0].Namespaces, evil)
	repository.PullSecrets = evil.PullSecrets
	node.Spec.Images["app"] = repository
	j := of("shop", "app:v2", func(j *v1beta1.ImagePullJob) { j.Spec.PullSecrets = []string{"one"} })
	if entry.Request(node, j, secretsOf(j), now) || len(node.Spec.Images["app"].Tags) != 1 {
		t.Errorf("%+v", node.Spec.Images["app"])
	}
}

// A pull is as new as the first job of the namespace for it, whenever others have asked for the image. One that does not say is older than any.
func TestAPullIsAsNewAsItsNamespaceHasAskedForIt(t *testing.T) {
	t.Parallel()
	node, names := full(t, func(i int) time.Time { return now.Add(time.Duration(i) * time.Second) }, "mallory")
	newest, unknown := names[3], names[4]
	for name, repository := range node.Spec.Images {
		is := &repository.Tags[0].Namespaces[0]
		is.CreatedAt = new(metav1.NewTime(now.Add(-time.Hour)))
		switch name {
		case newest:
			is.CreatedAt = new(metav1.NewTime(now))
		case unknown:
			is.CreatedAt = nil
		}
	}
	if got := gone(t, node, names); len(got) != 1 || got[0] != newest {
		t.Errorf("%q have made room, want %s", got, newest)
	}
}

// After a job is gone the pull of its namespace is not more patient than those that are left.
func TestTheLimitsOfAJobGoWithIt(t *testing.T) {
	t.Parallel()
	patient, other := patientJob("patient", v1beta1.PullIfNotPresent, 3000, 30, 30000), patientJob("other", v1beta1.PullIfNotPresent, 60, 1, 90)
	var spec v1beta1.NodeImageSpec
	for _, j := range []*v1beta1.ImagePullJob{patient, other} {
		j.Namespace = "shop"
		request(&spec, &v1beta1.NodeImageStatus{}, j, nil, now)
	}
	prune(&spec, &v1beta1.NodeImageStatus{}, among(other), now)
	tag := spec.Images["bn/mv"].Tags[0]
	for _, policy := range []*v1beta1.ImageTagPullPolicy{tag.PullPolicy, tag.Namespaces[0].PullPolicy} {
		if *policy.TimeoutSeconds != 60 || *policy.BackoffLimit != 1 || *policy.ActiveDeadlineSeconds != 90 {
			t.Errorf("%+v", policy)
		}
	}
}

// The version of a pull is counted for each namespace.
func TestAPullEndsInTheVersionOfItsNamespace(t *testing.T) {
	t.Parallel()
	j := named("a", func(j *v1beta1.ImagePullJob) { j.Status.CompletionTime = new(metav1.NewTime(now)) })
	for name, tt := range map[string]struct {
		version int64 // of the namespace; the tag has another one
		policy  *v1beta1.ImageTagPullPolicy
		removed bool
	}{
		"its version":             {7, &v1beta1.ImageTagPullPolicy{TTLSecondsAfterFinished: new(int32(60))}, true},
		"without a time to live":  {7, &v1beta1.ImageTagPullPolicy{}, false},
		"without any limits":      {7, nil, false},
		"not before it has ended": {7, &v1beta1.ImageTagPullPolicy{TTLSecondsAfterFinished: new(int32(3601))}, false},
	} {
		var spec v1beta1.NodeImageSpec
		request(&spec, &v1beta1.NodeImageStatus{}, j, nil, now.Add(-2*time.Hour))
		tag := &spec.Images["game"].Tags[0]
		tag.Namespaces[0].Version, tag.Version = tt.version, tt.version+1
		tag.Namespaces[0].PullPolicy = tt.policy
		states := map[image.Target]image.State{}
		for _, want := range image.Wanted(spec) {
			states[want.Target] = image.State{Phase: v1beta1.ImagePhaseSucceeded, Completed: now.Add(-time.Hour)}
		}
		status := image.Status(spec, states)
		prune(&spec, &status, func(corev1.ObjectReference) *v1beta1.ImagePullJob { return j }, now)
		if left := count(&v1beta1.NodeImage{Spec: spec}); (left["shop"] == 0) != tt.removed {
			t.Errorf("%s: %v are left", name, left)
		}
	}
}

func TestLimitsThatAJobDoesNotNameAreTheDefault(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		policy           *v1beta1.PullPolicy
		timeout, backoff int32
	}{
		"no policy":    {nil, 600, 3},
		"without both": {&v1beta1.PullPolicy{}, 600, 3},
		"attempts":     {&v1beta1.PullPolicy{BackoffLimit: new(int32(7))}, 600, 7},
		"a timeout":    {&v1beta1.PullPolicy{TimeoutSeconds: new(int32(70))}, 70, 3},
	} {
		for _, completion := range []v1beta1.CompletionPolicyType{v1beta1.CompletionAlways, v1beta1.CompletionNever} {
			var spec v1beta1.NodeImageSpec
			request(&spec, &v1beta1.NodeImageStatus{}, named("a", func(j *v1beta1.ImagePullJob) {
				j.Spec.PullPolicy, j.Spec.CompletionPolicy.Type = tt.policy, completion
			}), nil, now)
			got := spec.Images["game"].Tags[0].PullPolicy
			if got.TimeoutSeconds == nil || got.BackoffLimit == nil || *got.TimeoutSeconds != tt.timeout || *got.BackoffLimit != tt.backoff {
				t.Errorf("%s: %+v", name, got)
			}
		}
	}
}
