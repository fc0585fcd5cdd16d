package inplace

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/inplace/record"
)

// A record of OpenKruise's has whole seconds: the metadata may have been written up to a second later.
func TestRestartForMetadataOfWhichOnlyTheSecondIsKnownWaitsForTheWholeSecond(t *testing.T) {
	t.Parallel()
	written := time.Unix(1e9, 0)
	state := v1beta1.InPlaceUpdateState{ContainerBatchesRecord: []v1beta1.InPlaceUpdateContainerBatch{{Timestamp: metav1.NewTime(written), Containers: []string{"app"}}}}
	v := &view{record: &record.Record{State: state}}
	if got, want := v.metadataObserved("app"), written.Add(time.Second+metadataDelay); !got.Equal(want) {
		t.Errorf("without the time of the write: %s, want %s", got, want)
	}
	at := written.Add(300 * time.Millisecond)
	v.record.State.Refit = &v1beta1.InPlaceUpdateExtension{Written: &metav1.MicroTime{Time: at}}
	if got, want := v.metadataObserved("app"), at.Add(metadataDelay); !got.Equal(want) {
		t.Errorf("with it: %s, want %s", got, want)
	}
	next := metav1.NewTime(written.Add(time.Minute)) // by OpenKruise, which does not know the other time
	batches := []v1beta1.InPlaceUpdateContainerBatch{{Timestamp: next, Containers: []string{"app"}}, {Timestamp: metav1.NewTime(next.Add(time.Minute)), Containers: []string{"log"}}}
	v.record.State.ContainerBatchesRecord = append(batches, v.record.State.ContainerBatchesRecord...)
	if got, want := v.metadataObserved("app"), next.Add(time.Second+metadataDelay); !got.Equal(want) {
		t.Errorf("written again: %s, want %s", got, want)
	}
}

// The record has all containers that the update has changed. Kubelet can only lack the change of containers of the last write.
func TestWaitForKubeletNamesTheContainersThatWereWrittenLast(t *testing.T) {
	t.Parallel()
	at := metav1.NewTime(time.Unix(1e9, 0))
	batch := func(containers ...string) v1beta1.InPlaceUpdateContainerBatch {
		return v1beta1.InPlaceUpdateContainerBatch{Timestamp: at, Containers: containers}
	}
	for name, tt := range map[string]struct {
		batches   []v1beta1.InPlaceUpdateContainerBatch
		resources bool
		want      string
	}{
		"one after another":                {[]v1beta1.InPlaceUpdateContainerBatch{batch("app"), batch("log")}, false, "container log"},
		"after the resources":              {[]v1beta1.InPlaceUpdateContainerBatch{batch("app"), batch("log")}, true, "container log"},
		"two at once":                      {[]v1beta1.InPlaceUpdateContainerBatch{batch("app"), batch("log", "web")}, false, "containers log, web"},
		"of a container that is not there": {[]v1beta1.InPlaceUpdateContainerBatch{batch("app"), batch("gone")}, false, "container app"},
		"no record of writes":              {nil, false, "container app"},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Generation: 3}, Status: corev1.PodStatus{ObservedGeneration: 2}}
		last := map[string]v1beta1.InPlaceUpdateContainerStatus{}
		for _, container := range []string{"app", "log", "web"} {
			pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: container, Image: container + ":2"})
			pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{Name: container, ImageID: "sha256:1"})
			last[container] = v1beta1.InPlaceUpdateContainerStatus{ImageID: "sha256:1"}
		}
		state := v1beta1.InPlaceUpdateState{ContainerBatchesRecord: tt.batches, LastContainerStatuses: last, UpdateImages: true, UpdateResources: tt.resources}
		v := &view{pod: pod, record: &record.Record{State: state}, now: at.Time}
		if got := v.awaitBegun(); got == nil || got.Kind != KindWait || got.Message != "waiting for kubelet to see the change of "+tt.want {
			t.Errorf("%s: %+v, want %s", name, got, tt.want)
		}
	}
}
