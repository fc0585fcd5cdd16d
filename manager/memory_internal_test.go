package manager

import (
	"fmt"
	"runtime"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-project/refit/api/v1beta1"
)

// BenchmarkCachedPods decodes pods with two sidecars as the API server sends them, ten of each workload, and prints what a pod takes
// in the heap before and after it was trimmed, in bytes.
func BenchmarkCachedPods(b *testing.B) {
	const pods = 2000
	encoded := make([][]byte, pods)
	for i := range encoded {
		var err error
		if encoded[i], err = injectedPod(i).Marshal(); err != nil {
			b.Fatal(err)
		}
	}
	kept := cachedPods(allFeatures)
	var whole, trimmed float64
	for b.Loop() {
		whole = heapOf(b, encoded, func(pod *corev1.Pod) any { return pod })
		trimmed = heapOf(b, encoded, func(pod *corev1.Pod) any { return kept.Of(pod) })
	}
	b.ReportMetric(whole/pods, "B/decoded-pod")
	b.ReportMetric(trimmed/pods, "B/cached-pod")
	b.ReportMetric(trimmed/whole, "ratio")
}

// heapOf returns by how much the heap grows when what keep returns for each pod is kept.
func heapOf(b *testing.B, encoded [][]byte, keep func(*corev1.Pod) any) float64 {
	b.Helper()
	var before, after runtime.MemStats
	kept := make([]any, len(encoded))
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i, bytes := range encoded {
		var pod corev1.Pod
		if err := pod.Unmarshal(bytes); err != nil {
			b.Fatal(err)
		}
		kept[i] = keep(&pod)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(kept)
	return float64(after.HeapAlloc) - float64(before.HeapAlloc)
}

func injectedPod(i int) *corev1.Pod {
	workload := i / 10
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: fmt.Sprintf("web-%05d", i), UID: types.UID(fmt.Sprintf("5c7f4bb0-52b5-4e9a-9d7e-%012d", i)), ResourceVersion: fmt.Sprint(100000 + i),
		Labels: map[string]string{"app.kubernetes.io/name": "web", "app.kubernetes.io/instance": fmt.Sprintf("web-%d", workload), "pod-template-hash": "5d7b6c9f4"},
		Annotations: map[string]string{
			v1beta1.AnnotationSidecarSetList:             "logs,audit",
			v1beta1.AnnotationSidecarSetHash:             fmt.Sprintf(`{"audit":{"updateTimestamp":"2026-11-22T10:00:%02dZ","hash":"fxv8c6w7","sidecarSetName":"audit","sidecarList":["audit"]},"logs":{"updateTimestamp":"2026-11-22T10:00:%02dZ","hash":"wvx4z2b8","sidecarSetName":"logs","sidecarList":["agent"]}}`, workload%60, workload%60),
			v1beta1.AnnotationSidecarSetHashWithoutImage: `{"audit":{"hash":"b2d8x7c9","sidecarSetName":"audit"},"logs":{"hash":"z4w6c8v2","sidecarSetName":"logs"}}`,
			"kubectl.kubernetes.io/default-container":    "app",
		},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "apps/v1", Kind: "ReplicaSet", Name: fmt.Sprintf("web-%d-5d7b6c9f4", workload), UID: types.UID(fmt.Sprintf("0d1c2b3a-1111-2222-3333-%012d", workload)), Controller: new(true),
		}},
	}}
	pod.Spec.NodeName = fmt.Sprintf("node-%d", i%100)
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: fmt.Sprintf("10.1.%d.%d", i/250, i%250)}
	for _, kind := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady, corev1.PodReadyToStartContainers} {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Unix(1795341600, 0)})
	}
	for n, name := range []string{"app", "audit", "agent"} {
		container := corev1.Container{
			Name: name, Image: "docker.io/library/" + name + ":1.27.3", Command: []string{"/" + name},
			VolumeMounts:             []corev1.VolumeMount{{Name: "kube-api-access-x7c9v", MountPath: "/var/run/secrets/kubernetes.io/serviceaccount", ReadOnly: true}},
			TerminationMessagePath:   corev1.TerminationMessagePathDefault,
			TerminationMessagePolicy: corev1.TerminationMessageReadFile, ImagePullPolicy: corev1.PullIfNotPresent,
		}
		if n > 0 {
			container.Env = []corev1.EnvVar{{Name: v1beta1.EnvSidecarInjected, Value: "true"}, {Name: "LEVEL", Value: "info"}}
		}
		pod.Spec.Containers = append(pod.Spec.Containers, container)
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: name, Image: container.Image, ImageID: fmt.Sprintf("docker.io/library/%s@sha256:%064d", name, n), ContainerID: fmt.Sprintf("containerd://%064d", i*3+n), Ready: true,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Unix(1795341600, 0)}}, Started: new(true),
		})
	}
	return pod
}
