package e2e_test

import (
	"context"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
)

// TestManagersTokenIsNotWorthACluster plays a manager that has been taken over: its token against the API server.
func TestManagersTokenIsNotWorthACluster(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	pod := s.start(s.podOf("web", shell("app", obedient)))
	kruises := s.podOf("kruises", shell("app", obedient))
	kruises.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps.kruise.io/v1alpha1", Kind: "CloneSet", Name: "web", UID: "u", Controller: new(true)}}
	s.check(s.Create(t.Context(), kruises), "create pod")
	manager := s.as(s.token(systemNamespace, "refit-manager", nil))
	status := func(patch string) func(context.Context) error {
		return func(ctx context.Context) error { return manager.Status().Patch(ctx, pod.DeepCopy(), merge(patch)) }
	}
	// conditions are merged by type, as drains do it
	condition := func(patch string) func(context.Context) error {
		return func(ctx context.Context) error {
			return manager.Status().Patch(ctx, pod.DeepCopy(), client.RawPatch(types.StrategicMergePatchType, []byte(`{"status":{"conditions":[`+patch+`]}}`)))
		}
	}
	webhooks := &admissionregistrationv1.MutatingWebhookConfiguration{}
	webhooks.Name = "refit-manager"
	secret := func(name string) func(context.Context) error {
		return func(ctx context.Context) error {
			return manager.Get(ctx, client.ObjectKey{Namespace: systemNamespace, Name: name}, &corev1.Secret{})
		}
	}
	list := func(group, kind, namespace string) func(context.Context) error {
		return func(ctx context.Context) error {
			objects := &metav1.PartialObjectMetadataList{}
			objects.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind})
			return manager.List(ctx, objects, client.InNamespace(namespace))
		}
	}
	const policy = "ValidatingAdmissionPolicy"
	revision := func(name, apiVersion, kind, owner string) func(context.Context) error {
		made := &appsv1.ControllerRevision{Data: runtime.RawExtension{Raw: []byte(`{"spec":{}}`)}, Revision: 1000}
		made.Namespace, made.Name, made.Labels = systemNamespace, name, map[string]string{v1beta1.LabelSidecarSetName: owner}
		made.OwnerReferences = []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: owner, UID: "u", Controller: new(true)}}
		return func(ctx context.Context) error { return manager.Create(ctx, made, client.DryRunAll) }
	}
	checkAccess(t, map[string]access{
		"a label from a probe result":       {do: status(`{"metadata":{"labels":{"example.com/idle":"yes"}}}`)},
		"an annotation from a probe result": {do: status(`{"metadata":{"annotations":{"controller.kubernetes.io/pod-deletion-cost":"1"}}}`)},
		"a condition from a probe result":   {do: condition(`{"type":"example.com/idle","status":"True"}`)},
		"the condition of a drain":          {do: condition(`{"type":"KruisePodReady","status":"True"}`)},

		"the gate of an update is opened": {do: condition(`{"type":"InPlaceUpdateReady","status":"True"}`)},
		"the gate of an update is shut":   {do: condition(`{"type":"InPlaceUpdateReady","status":"False"}`), words: []string{policy, "InPlaceUpdateReady to True only"}},
		"the gate of a pod of a workload of OpenKruise": {do: func(ctx context.Context) error {
			return manager.Status().Patch(ctx, kruises.DeepCopy(), client.RawPatch(types.StrategicMergePatchType, []byte(`{"status":{"conditions":[{"type":"InPlaceUpdateReady","status":"True"}]}}`)), client.DryRunAll)
		}, words: []string{policy, "not for pods of OpenKruise's workloads"}},

		"a label of Kubernetes":         {do: status(`{"metadata":{"labels":{"topology.kubernetes.io/zone":"x"}}}`), words: []string{policy, "reserved"}},
		"the hash of a ReplicaSet":      {do: status(`{"metadata":{"labels":{"pod-template-hash":"x"}}}`), words: []string{policy, "reserved"}},
		"an annotation of refit-daemon": {do: status(`{"metadata":{"annotations":{"refit.dev/nudge":"x"}}}`), words: []string{policy, "reserved"}},
		"condition of kubelet":          {do: condition(`{"type":"Initialized","status":"False"}`), words: []string{policy, "conditions of kubelet"}},
		"phase":                         {do: status(`{"status":{"phase":"Failed"}}`), words: []string{policy, "nothing of a pod's status but conditions"}},
		"address":                       {do: status(`{"status":{"podIP":"10.9.9.9","podIPs":[{"ip":"10.9.9.9"}]}}`), words: []string{policy, "nothing of a pod's status but conditions"}},
		"container states":              {do: status(`{"status":{"containerStatuses":null}}`), words: []string{policy, "nothing of a pod's status but conditions"}},
		"a resize":                      {do: status(`{"status":{"resize":"Infeasible"}}`), words: []string{policy, "nothing of a pod's status but conditions"}},
		"finalizer":                     {do: status(`{"metadata":{"finalizers":["a.b/c"]}}`), words: []string{policy}},
		"spec of a pod": {do: func(ctx context.Context) error {
			return manager.Patch(ctx, pod.DeepCopy(), merge(`{"spec":{"activeDeadlineSeconds":1}}`))
		}, words: []string{policy, "nothing of a pod's spec but images and resources"}},
		"image of an application": {do: func(ctx context.Context) error {
			changed := pod.DeepCopy()
			changed.Spec.Containers[0].Image = "evil"
			return manager.Patch(ctx, changed, client.StrategicMergeFrom(pod))
		}, words: []string{policy}},

		"a version of a SidecarSet": {do: revision("log-1", v1beta1.GroupVersion().String(), "SidecarSet", "log")},
		"a version of refit-daemon": {do: revision("refit-daemon-1", "apps/v1", "DaemonSet", "refit-daemon"), words: []string{policy, "SidecarSets"}},

		"webhook configuration": {do: func(ctx context.Context) error {
			return manager.Patch(ctx, webhooks.DeepCopy(), merge(`{"webhooks":[]}`))
		}, words: []string{"cannot patch"}},
		"its certificate":      {do: secret("refit-manager-webhook-cert")},
		"key of its authority": {do: secret("refit-manager-webhook-ca"), words: []string{"cannot get"}},
		"other secrets of its namespace": {do: func(ctx context.Context) error {
			return manager.List(ctx, &corev1.SecretList{}, client.InNamespace(systemNamespace))
		}, words: []string{"cannot list"}},
		"secrets of other namespaces": {do: list("", "SecretList", "kube-system"), words: []string{"cannot list"}},
		"all CRDs":                    {do: list("apiextensions.k8s.io", "CustomResourceDefinitionList", ""), words: []string{"cannot list"}},
		"all webhooks":                {do: list("admissionregistration.k8s.io", "MutatingWebhookConfigurationList", ""), words: []string{"cannot list"}},
		"writing its certificate": {do: func(ctx context.Context) error {
			cert := &corev1.Secret{}
			cert.Namespace, cert.Name = systemNamespace, "refit-manager-webhook-cert"
			return manager.Patch(ctx, cert, merge(`{"data":{"tls.crt":""}}`))
		}, words: []string{"cannot patch"}},
	})
}

// TestDrainEndsWhenTheLeaderIsLost kills the leading manager while a pod is kept not ready. It is not parallel: others
// need a manager.
func TestDrainEndsWhenTheLeaderIsLost(t *testing.T) {
	s := newFixture(t)
	pod := s.podOf("web", shell("app", obedient))
	pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: v1beta1.ReadinessGateKruisePodReady}}
	before := s.start(pod)
	s.ask("r", "web/app", func(r *request) {
		r.Spec.Strategy = &v1beta1.ContainerRecreateRequestStrategy{UnreadyGracePeriodSeconds: new(int64(20))}
	})
	drained := func(pod *corev1.Pod, want corev1.ConditionStatus) bool {
		for _, c := range pod.Status.Conditions {
			if c.Type == v1beta1.ReadinessGateKruisePodReady {
				return c.Status == want
			}
		}
		return false
	}
	s.awaitPod("web", "to be not ready", func(pod *corev1.Pod) bool { return drained(pod, corev1.ConditionFalse) })

	lease := &coordinationv1.Lease{}
	s.check(s.Get(t.Context(), client.ObjectKey{Namespace: systemNamespace, Name: "refit-manager"}, lease), "get lease")
	leader := &corev1.Pod{}
	leader.Namespace, leader.Name = systemNamespace, leaderOf(lease)
	s.check(s.Delete(t.Context(), leader, client.GracePeriodSeconds(0)), "kill the leader")
	t.Cleanup(func() {
		if err := until(context.WithoutCancel(t.Context()), patience, s.admits); err != nil {
			t.Errorf("wait for the manager: %v", err)
		}
	})

	s.succeeded("r")
	s.restarted(before, "app", 1)
	s.awaitPod("web", "to be ready again", func(pod *corev1.Pod) bool { return drained(pod, corev1.ConditionTrue) })
	s.awaitRequest("r", "to be retired", func(r *request) bool { return r.Labels[v1beta1.LabelActive] == "" && len(r.Finalizers) == 0 })
}

// leaderOf returns the pod that holds a lease: its holder identity is the pod's name and a UUID.
func leaderOf(lease *coordinationv1.Lease) string {
	const uuid = len("_00000000-0000-0000-0000-000000000000")
	holder := *lease.Spec.HolderIdentity
	return holder[:max(len(holder)-uuid, 0)]
}
