package image_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/image"
)

func spec() v1beta1.NodeImageSpec {
	created := metav1.Unix(1000, 0)
	return v1beta1.NodeImageSpec{Images: map[string]v1beta1.ImageSpec{
		"b": {Tags: []v1beta1.ImageTagSpec{{Tag: "v1", Version: 3}, {Tag: "v1"}, {Tag: digest}}},
		"a": {
			PullSecrets: []v1beta1.ReferenceObject{{Namespace: "n", Name: "s"}},
			Tags: []v1beta1.ImageTagSpec{{Tag: "v2", CreatedAt: &created, ImagePullPolicy: v1beta1.PullAlways, PullPolicy: &v1beta1.ImageTagPullPolicy{
				TimeoutSeconds: new(int32(5)), BackoffLimit: new(int32(0)), ActiveDeadlineSeconds: new(int64(60)),
			}}},
		},
	}}
}

func target(repository, tag string) image.Target {
	return image.Target{Reference: image.Reference{Repository: repository, Tag: tag}}
}

func TestWantedReadsPoliciesAndDefaults(t *testing.T) {
	t.Parallel()
	wants := image.Wanted(spec())
	if len(wants) != 3 {
		t.Fatalf("%+v", wants)
	}
	last := wants[2]
	if last.Repository != "a" || last.Timeout != 5*time.Second || last.Retries != 0 || last.Deadline != time.Minute || !last.Always || last.Secrets[0].Name != "s" {
		t.Errorf("%+v", last)
	}
	if first := wants[0]; first.String() != "b:v1" || first.Version != 3 || first.Timeout != 10*time.Minute || first.Retries != 3 || first.Always {
		t.Errorf("%+v", first)
	}
	if wants[1].String() != "b@"+digest {
		t.Errorf("%s", wants[1])
	}
	negative := image.Wanted(v1beta1.NodeImageSpec{Images: map[string]v1beta1.ImageSpec{"a": {Tags: []v1beta1.ImageTagSpec{{
		Tag: "v1", PullPolicy: &v1beta1.ImageTagPullPolicy{TimeoutSeconds: new(int32(-1)), BackoffLimit: new(int32(-1)), ActiveDeadlineSeconds: new(int64(-1))},
	}}}}})
	if negative[0].Retries != 3 || negative[0].Timeout != 10*time.Minute || negative[0].Deadline != 0 {
		t.Errorf("%+v", negative[0])
	}
	if none := image.Wanted(v1beta1.NodeImageSpec{Images: map[string]v1beta1.ImageSpec{"a": {Tags: []v1beta1.ImageTagSpec{{
		Tag: "v1", PullPolicy: &v1beta1.ImageTagPullPolicy{},
	}}}}}); none[0].Retries != 3 || none[0].Timeout != 10*time.Minute || none[0].Deadline != 0 || none[0].Jobs != nil {
		t.Errorf("%+v", none[0])
	}
	zero := image.Wanted(v1beta1.NodeImageSpec{Images: map[string]v1beta1.ImageSpec{"a": {Tags: []v1beta1.ImageTagSpec{{
		Tag: "v1", PullPolicy: &v1beta1.ImageTagPullPolicy{TimeoutSeconds: new(int32(0)), ActiveDeadlineSeconds: new(int64(0))},
	}}}}})
	if zero[0].Deadline != 0 || zero[0].Timeout != 10*time.Minute {
		t.Errorf("%+v", zero[0])
	}
}

func TestStatus(t *testing.T) {
	t.Parallel()
	at := time.Unix(2000, 999)
	states := map[image.Target]image.State{
		target("a", "v2"): {Phase: v1beta1.ImagePhasePulling, Started: at, Pulled: 512, Total: 1024},
		target("b", "v1"): {Phase: v1beta1.ImagePhaseSucceeded, Started: at, Completed: at, ImageID: "sha256:1"},
	}
	second := metav1.Time{Time: time.Unix(2000, 0).UTC()}
	want := v1beta1.NodeImageStatus{Desired: 3, Succeeded: 1, Pulling: 1, Waiting: 1, ImageStatuses: map[string]v1beta1.ImageStatus{
		"a": {Tags: []v1beta1.ImageTagStatus{{Tag: "v2", Phase: "Pulling", Progress: 50, StartTime: &second, PulledBytes: 512, TotalBytes: 1024}}},
		"b": {Tags: []v1beta1.ImageTagStatus{
			{Tag: "v1", Phase: "Succeeded", Progress: 100, StartTime: &second, CompletionTime: &second, Version: 3, ImageID: "b@sha256:1"},
			{Tag: digest, Phase: "Waiting"},
		}},
	}}
	got := image.Status(spec(), states)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if _, ok := image.Known(&v1beta1.NodeImageStatus{}, image.Wanted(spec())[0]); ok {
		t.Error("a new NodeImage is known")
	}
	known, ok := image.Known(&got, image.Wanted(spec())[0])
	if !ok || known.ImageID != "sha256:1" || !known.Completed.Equal(second.Time) {
		t.Errorf("%t %+v", ok, known)
	}
}

func TestOnlyNewsIsWritten(t *testing.T) {
	t.Parallel()
	at := func(pulled int64) v1beta1.NodeImageStatus {
		return image.Status(spec(), map[image.Target]image.State{target("a", "v2"): {Phase: v1beta1.ImagePhasePulling, Pulled: pulled, Total: 1000}})
	}
	if image.News(at(10), at(190)) {
		t.Error("19 % is news after 1 %")
	}
	if !image.News(at(190), at(200)) {
		t.Error("20 % is no news")
	}
	writes, last := 0, at(0)
	for n := range int64(1001) {
		if image.News(last, at(n)) {
			last = at(n)
			writes++
		}
	}
	if writes != 4 {
		t.Errorf("%d writes for bytes", writes)
	}
	done := image.Status(spec(), map[image.Target]image.State{target("a", "v2"): {Phase: v1beta1.ImagePhaseSucceeded}})
	if !image.News(last, done) {
		t.Error("the end is no news")
	}
}

func TestForeignMessageIsBounded(t *testing.T) {
	t.Parallel()
	status := image.Status(spec(), map[image.Target]image.State{target("a", "v2"): {Phase: v1beta1.ImagePhaseFailed, Message: strings.Repeat("é", 5000)}})
	if m := status.ImageStatuses["a"].Tags[0].Message; len(m) > 520 || !utf8.ValidString(m) {
		t.Errorf("%d bytes", len(m))
	}
}
