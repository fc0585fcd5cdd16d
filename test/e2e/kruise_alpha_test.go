package e2e_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
)

// TestRequestsUnderCRDsOfV1alpha1Alone is the daemon with OpenKruise up to 1.9: the status has no conditions, and the test
// plays their manager. It is not parallel, as the CRD is everybody's: parallel tests begin when this one has ended.
func TestRequestsUnderCRDsOfV1alpha1Alone(t *testing.T) {
	s := newFixture(t)
	s.needsOwnCluster(t)
	node := s.nodes[0]
	before := s.start(on(node, s.podOf("plain", shell("app", obedient))))
	gated := on(node, s.podOf("gated", shell("app", obedient), shell("other", obedient)))
	gated.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: v1beta1.ReadinessGateKruisePodReady}}
	gated = s.start(gated)
	reader := s.metricsReader()
	s.withAlphaAlone()

	s.admitted("plain", before, "app", nil)
	drain := int64(1)
	s.admitted("drained", gated, "app", &drain)
	s.awaitAlpha("drained", "to be taken", func(r *alphaRequest) bool { return r.Status.Phase == v1beta1.ContainerRecreateRequestRecreating })
	s.check(s.Patch(t.Context(), &alphaRequest{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "drained"}},
		merge(`{"metadata":{"annotations":{"`+v1beta1.AnnotationUnreadyAcquired+`":"`+time.Now().UTC().Format(time.RFC3339)+`"}}}`)), "tell that the pod is not ready")
	for _, name := range []string{"plain", "drained"} {
		r := s.completedAlpha(name)
		if state := r.Status.ContainerRecreateStates; r.Status.Message != "" || len(state) != 1 || state[0].Phase != v1beta1.ContainerRecreateRequestSucceeded {
			t.Errorf("request %s: message %q, states %+v", name, r.Status.Message, state)
		}
	}
	s.restarted(before, "app", 1)
	s.restarted(gated, "app", 1)

	// Nobody makes the pod not ready, so nothing may be stopped.
	asked := time.Now()
	s.admitted("never", gated, "other", &drain)
	never := s.completedAlpha("never")
	if took := time.Since(asked); took < 50*time.Second || !strings.Contains(never.Status.Message, "not ready") {
		t.Errorf("ended after %s with %q, want a minute and that the pod was not made not ready", took.Round(time.Second), never.Status.Message)
	}
	s.untouched(gated, "other")
	code, body := s.get(t.Context(), "https://"+s.forward(s.daemonOn(node), "10223")+"/metrics", reader)
	for _, line := range []string{
		`refit_crr_completed_total{reason="Succeeded",result="succeeded"} 2`, `refit_crr_completed_total{reason="DrainNotAcquired",result="failed"} 1`,
	} {
		if code != http.StatusOK || !strings.Contains(body, line+"\n") {
			t.Errorf("HTTP status %d, metrics lack %s", code, line)
		}
	}
}

type alphaRequest = v1alpha1.ContainerRecreateRequest

// admitted makes a request as a kruise-manager lets it through.
func (s *fixture) admitted(name string, pod *corev1.Pod, container string, drain *int64) {
	s.t.Helper()
	r := &alphaRequest{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name, Labels: map[string]string{
		v1beta1.LabelPodUID: string(pod.UID), v1beta1.LabelNodeName: pod.Spec.NodeName, v1beta1.LabelActive: "true",
	}}}
	r.Spec.PodName = pod.Name
	r.Spec.Strategy = &v1beta1.ContainerRecreateRequestStrategy{UnreadyGracePeriodSeconds: drain}
	r.Spec.Containers = []v1beta1.ContainerRecreateRequestContainer{{
		Name: container, StatusContext: &v1beta1.ContainerRecreateRequestContainerContext{ContainerID: status(pod, container).ContainerID},
	}}
	s.check(s.Create(s.t.Context(), r), "make request %s", name)
}

func (s *fixture) awaitAlpha(name, what string, done func(*alphaRequest) bool) *alphaRequest {
	s.t.Helper()
	r := &alphaRequest{}
	s.await("request "+name+" "+what, func(ctx context.Context) (bool, error) {
		err := s.Get(ctx, s.key(name), r)
		return err == nil && done(r), err
	})
	return r
}

func (s *fixture) completedAlpha(name string) *alphaRequest {
	s.t.Helper()
	return s.awaitAlpha(name, "to be completed", func(r *alphaRequest) bool { return r.Status.Phase == v1beta1.ContainerRecreateRequestCompleted })
}

// withAlphaAlone has, until the test ends, no refit-manager and no webhook, and a CRD with v1alpha1 alone, whose status has
// no conditions. A CRD cannot lose a version that has been stored, so it is deleted and created again, and the daemons are restarted.
func (s *fixture) withAlphaAlone() {
	s.t.Helper()
	ctx := context.WithoutCancel(s.t.Context())
	const webhook = "mutatingwebhookconfiguration/refit-manager"
	full, hook := s.stored("crd/"+requestCRD), s.stored(webhook)
	alpha := full.DeepCopy()
	versions, _, err := unstructured.NestedSlice(alpha.Object, "spec", "versions")
	s.check(err, "versions of the CRD")
	version := versions[0].(map[string]any)
	version["storage"] = true
	status := []string{"schema", "openAPIV3Schema", "properties", "status", "properties"}
	unstructured.RemoveNestedField(version, append(status, "conditions")...)
	unstructured.RemoveNestedField(version, append(status, "containerRecreateStates", "items", "properties", "containerID")...)
	unstructured.RemoveNestedField(version, "additionalPrinterColumns")
	s.check(unstructured.SetNestedSlice(alpha.Object, versions[:1], "spec", "versions"), "versions of the CRD")
	replace := func(crd *unstructured.Unstructured) {
		s.kubectlOrFail(ctx, "", "delete", "crd", requestCRD)
		s.kubectlOrFail(ctx, s.text(crd), "create", "--filename", "-")
		s.kubectlOrFail(ctx, "", "wait", "crd/"+requestCRD, "--for=condition=Established", "--timeout=60s")
		s.kubectlOrFail(ctx, "", "rollout", "restart", "--namespace="+systemNamespace, "daemonset/refit-daemon")
		s.kubectlOrFail(ctx, "", "rollout", "status", "--namespace="+systemNamespace, "daemonset/refit-daemon", "--timeout=120s")
	}
	s.scaleManager(0) // its clean-up is the last one
	s.t.Cleanup(func() {
		replace(full)
		s.kubectlOrFail(ctx, s.text(hook), "create", "--filename", "-")
	})
	s.kubectlOrFail(ctx, "", "delete", webhook)
	replace(alpha)
}

// stored is an object as kubectl create takes it.
func (s *fixture) stored(name string) *unstructured.Unstructured {
	s.t.Helper()
	var object unstructured.Unstructured
	s.check(json.Unmarshal([]byte(s.run("get", name, "--output=json")), &object.Object), "decode %s", name)
	for _, field := range []string{"resourceVersion", "uid", "creationTimestamp", "generation", "managedFields"} {
		unstructured.RemoveNestedField(object.Object, "metadata", field)
	}
	unstructured.RemoveNestedField(object.Object, "status")
	return &object
}

func (s *fixture) text(object *unstructured.Unstructured) string {
	s.t.Helper()
	text, err := json.Marshal(object.Object)
	s.check(err, "encode %s", object.GetName())
	return string(text)
}

func (s *fixture) kubectlOrFail(ctx context.Context, input string, args ...string) {
	s.t.Helper()
	if out, err := s.kubectl(ctx, input, args...); err != nil {
		s.t.Errorf("kubectl %v: %v: %s", args, err, out)
	}
}
