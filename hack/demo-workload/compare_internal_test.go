package main

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func podOf(uid, address, app, log string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid)}}
	pod.Status.PodIP = address
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", ContainerID: app}, {Name: "log", ContainerID: log}}
	return pod
}

func TestWhatIsDifferentInPods(t *testing.T) {
	t.Parallel()
	before := map[string]*corev1.Pod{"a": podOf("1", "10.0.0.1", "a1", "l1"), "b": podOf("2", "10.0.0.2", "a2", "l2")}
	inPlace, replaced := &result{}, &result{}
	inPlace.pods(before, map[string]*corev1.Pod{"a": podOf("1", "10.0.0.1", "a3", "l1"), "b": podOf("2", "10.0.0.2", "a2", "l2")})
	if want := (result{restarted: 1}); *inPlace != want {
		t.Errorf("in place: %+v, want %+v", *inPlace, want)
	}
	replaced.pods(before, map[string]*corev1.Pod{"a": podOf("1", "10.0.0.1", "a1", "l1"), "c": podOf("3", "10.0.0.3", "a3", "l3")})
	if want := (result{uids: 1, addresses: 1, restarted: 1, logs: 1}); *replaced != want {
		t.Errorf("replaced: %+v, want %+v", *replaced, want)
	}
}
