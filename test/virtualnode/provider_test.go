package main

import (
	"maps"
	"slices"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

const backend = "backend"

// web is a pod with a volume of the API, as the examples of refit-sidecar have it.
func web() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "games", Name: "web", UID: "u1", Labels: map[string]string{"app": "web"}},
		Spec: corev1.PodSpec{
			NodeName: "virtual", ServiceAccountName: "refit-sidecar", ShareProcessNamespace: new(true),
			ReadinessGates: []corev1.PodReadinessGate{{ConditionType: "a.b/c"}},
			Containers:     []corev1.Container{{Name: "nginx", Image: "nginx:1"}},
			Volumes: []corev1.Volume{
				{Name: "files", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
				{Name: "api", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
					{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}},
					{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "ca"}, Items: []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}}}},
					{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{{Path: "namespace", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.namespace"}}}}},
				}}}},
			},
		},
	}
}

func newFixture(t *testing.T) (*provider, *fake.Clientset) {
	t.Helper()
	client := fake.NewClientset(web(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "games", Name: "ca"}, Data: map[string]string{"ca.crt": "first", "other": "x"}})
	client.PrependReactor("create", "serviceaccounts", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, &authenticationv1.TokenRequest{Status: authenticationv1.TokenRequestStatus{Token: "bound", ExpirationTimestamp: metav1.NewTime(time.Now().Add(time.Hour))}}, nil
	})
	return newProvider(client, backend), client
}

func TestAPodRunsInTheBackendWithWhatTheAPIGivesIt(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	p, client := newFixture(t)
	if err := p.CreatePod(ctx, web()); err != nil {
		t.Fatal(err)
	}
	pod, err := client.CoreV1().Pods(backend).Get(ctx, backendName(web()), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if pod.Spec.NodeName != "" || pod.Spec.ServiceAccountName != "" || *pod.Spec.AutomountServiceAccountToken || !*pod.Spec.ShareProcessNamespace || pod.Labels["app"] != "" {
		t.Errorf("pod %+v", pod)
	}
	secret, err := client.CoreV1().Secrets(backend).Get(ctx, pod.Spec.Volumes[1].Secret.SecretName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	files := slices.Sorted(maps.Keys(secret.Data))
	if !slices.Equal(files, []string{"ca.crt", "namespace", "token"}) || string(secret.Data["token"]) != "bound" || string(secret.Data["namespace"]) != "games" {
		t.Errorf("volume %s", secret.Data)
	}
}

func TestStatusAndChangedVolumesFollow(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	p, client := newFixture(t)
	if err := p.CreatePod(ctx, web()); err != nil {
		t.Fatal(err)
	}
	running, _ := client.CoreV1().Pods(backend).Get(ctx, backendName(web()), metav1.GetOptions{})
	running.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.1", Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}
	if _, err := client.CoreV1().Pods(backend).UpdateStatus(ctx, running, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	ca, _ := client.CoreV1().ConfigMaps("games").Get(ctx, "ca", metav1.GetOptions{})
	ca.Data["ca.crt"] = "second"
	if _, err := client.CoreV1().ConfigMaps("games").Update(ctx, ca, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := p.sync(ctx, web()); err != nil {
		t.Fatal(err)
	}
	pod, _ := client.CoreV1().Pods("games").Get(ctx, "web", metav1.GetOptions{})
	if pod.Status.Phase != corev1.PodRunning || pod.Status.PodIP != "10.0.0.1" || pod.Status.Conditions[0].Status != corev1.ConditionFalse {
		t.Errorf("status %+v: the readiness gate is not open", pod.Status)
	}
	secret, _ := client.CoreV1().Secrets(backend).Get(ctx, running.Spec.Volumes[1].Secret.SecretName, metav1.GetOptions{})
	running, _ = client.CoreV1().Pods(backend).Get(ctx, running.Name, metav1.GetOptions{})
	if string(secret.Data["ca.crt"]) != "second" || running.Annotations[changedAnnotation] == "" {
		t.Errorf("volume %s, annotations %v", secret.Data, running.Annotations)
	}
}

func TestAPodIsGoneAfterItsContainers(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	p, client := newFixture(t)
	if err := p.CreatePod(ctx, web()); err != nil {
		t.Fatal(err)
	}
	if err := client.CoreV1().Pods("games").Delete(ctx, "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := p.sync(ctx, web()); err != nil {
		t.Fatal(err)
	}
	pods, _ := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	if kept, _ := p.GetPods(ctx); len(pods.Items)+len(kept) > 0 {
		t.Errorf("left: %v, %v", pods.Items, kept)
	}
}
