package e2e_test

import (
	"encoding/json"
	"net"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestAPodLearnsNothingFromTheWebhooks has pods ask the webhook of requests about a pod with a hook, each in the moment in which its container
// starts: they are refused. A pod in the host network is answered, because nodes and API servers have its address, and requests are admitted as before.
func TestAPodLearnsNothingFromTheWebhooks(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	const secret = "token-of-another-tenant"
	web := s.podOf("web", shell("app", obedient))
	web.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"echo", secret}}}}
	before := s.start(web)
	review := `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"42","operation":"CREATE","namespace":"` + s.namespace + `",` +
		`"kind":{"group":"apps.kruise.io","version":"v1beta1","kind":"ContainerRecreateRequest"},"object":{"apiVersion":"apps.kruise.io/v1beta1",` +
		`"kind":"ContainerRecreateRequest","metadata":{"name":"r","namespace":"` + s.namespace + `"},"spec":{"podName":"web","containers":[{"name":"app"}]}}}}`
	var managers corev1.PodList
	s.check(s.List(t.Context(), &managers, managerPods()...), "list managers")
	var service corev1.Service
	s.check(s.Get(t.Context(), client.ObjectKey{Namespace: systemNamespace, Name: "refit-manager-webhook"}, &service), "get Service of the webhooks")
	const path = "/mutate-apps-kruise-io-containerrecreaterequest"
	direct, byService := "https://"+net.JoinHostPort(managers.Items[0].Status.PodIP, "9443")+path, "https://"+service.Spec.ClusterIP+path
	s.posts("direct", direct, review, false)
	s.posts("service", byService, review, false)
	s.posts("node", direct, review, true)
	for _, name := range []string{"direct", "service"} {
		if status, answer := s.posted(name); status != "403" || strings.Contains(answer, "{") {
			t.Errorf("pod %s got status %s and the answer %s", name, status, answer)
		}
	}
	status, answer := s.posted("node")
	var answered admissionv1.AdmissionReview
	if err := json.Unmarshal([]byte(answer), &answered); err != nil || answered.Response == nil || !strings.Contains(string(answered.Response.Patch), secret) {
		t.Errorf("a pod in the host network got status %s and the answer %s", status, answer)
	}
	s.ask("r", "web/app")
	s.succeeded("r")
	s.restarted(before, "app", 1)
}

// posts creates a pod that sends a body to a URL. It does so when kubelet has had time to publish the address of the pod, which a busy node
// takes longer for than the webhook waits.
func (s *fixture) posts(name, url, body string, hostNetwork bool) {
	s.t.Helper()
	repository, _, digest := s.testappImage()
	pod := s.podOf(name, corev1.Container{Name: "app", Image: repository + "@" + digest, Args: []string{"post", url, body}})
	pod.Spec.InitContainers = []corev1.Container{shell("published", "sleep 5")}
	pod.Spec.RestartPolicy, pod.Spec.HostNetwork = corev1.RestartPolicyNever, hostNetwork
	s.check(s.Create(s.t.Context(), pod), "make pod %s", name)
}

// posted returns what such a pod was answered.
func (s *fixture) posted(name string) (status, answer string) {
	s.t.Helper()
	s.awaitPod(name, "to end", func(pod *corev1.Pod) bool {
		return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	})
	status, answer, _ = strings.Cut(s.run("logs", name, "--container=app"), "\n")
	return status, answer
}
