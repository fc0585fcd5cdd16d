package e2e_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	refitv1alpha1 "github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/test/kit/fakeregistry"
)

// An image that does not exist stops no container, is reported with the words of the registry, and is undone where the policy
// says so.
func TestAnImageThatDoesNotExistStopsNoContainer(t *testing.T) {
	t.Parallel()
	for _, undo := range []bool{false, true} {
		t.Run(map[bool]string{false: "Pause", true: "Undo"}[undo], func(t *testing.T) {
			t.Parallel()
			w := newWorkload(t, "Deployment", "replicas: 3,")
			before := w.ready(3)
			spec := ", maxUnavailable: 3"
			if undo {
				spec += ", failurePolicy: Undo"
			}
			w.follows(spec)
			stop := w.unavailable("web")
			w.run("set", "image", w.ref, "app="+missingImage)
			if undo {
				w.await("the former template", func(ctx context.Context) (bool, error) {
					policy := &refitv1alpha1.InPlaceUpdatePolicy{}
					err := w.Get(ctx, w.key("web"), policy)
					return policy.Status.UndoneRevision != "", err
				})
				w.says(refitv1alpha1.ConditionReady, metav1.ConditionTrue, "")
				w.rolledOut()
			} else {
				policy := w.says(refitv1alpha1.ConditionProgressing, metav1.ConditionFalse, refitv1alpha1.ReasonImagePullFailed)
				c := meta.FindStatusCondition(policy.Status.Conditions, refitv1alpha1.ConditionProgressing)
				w.observed("message: %s", c.Message)
				if !strings.Contains(c.Message, missingImage) || policy.Status.FailedPods != 0 {
					t.Errorf("message %q, %d failed pods", c.Message, policy.Status.FailedPods)
				}
			}
			if most := stop(); most > 0 {
				t.Errorf("%d pods were not ready at a time", most)
			}
			w.keeps(before)
			for i := range before {
				w.untouched(&before[i], "app")
			}
			w.run("set", "image", w.ref, "app="+newImage)
			w.updated(before, newImage, 1)
		})
	}
}

// The jobs belong to the policy, and have ended before the first container is stopped.
func TestImagesOfAWorkloadArePulledBeforeItIsUpdated(t *testing.T) {
	t.Parallel()
	w := newWorkload(t, "DaemonSet", ownDaemonSet)
	before := w.webs()
	w.follows("")
	w.run("set", "image", w.ref, "app="+newImage)
	after := w.updated(before, newImage, 1)
	var jobs v1beta1.ImagePullJobList
	w.check(w.List(t.Context(), &jobs, client.InNamespace(w.namespace)), "list ImagePullJobs")
	if len(jobs.Items) != 1 {
		t.Fatalf("%d ImagePullJobs", len(jobs.Items))
	}
	job := &jobs.Items[0]
	if job.Status.CompletionTime == nil || int(job.Status.Succeeded) != len(before) || job.OwnerReferences[0].Kind != refitv1alpha1.KindInPlaceUpdatePolicy {
		t.Errorf("status %+v, owners %v", job.Status, job.OwnerReferences)
	}
	for i := range after {
		if started := status(&after[i], "app").State.Running.StartedAt; started.Before(job.Status.CompletionTime) {
			t.Errorf("pod %s was updated at %s, before the end of the pull at %s", after[i].Name, started, job.Status.CompletionTime)
		}
	}
	w.run("delete", "inplaceupdatepolicy/web", "--timeout="+patience.String())
	w.await("end of the jobs", func(ctx context.Context) (bool, error) {
		err := w.List(ctx, &jobs, client.InNamespace(w.namespace))
		return len(jobs.Items) == 0, err
	})
}

// apart has the pods of a workload run on different nodes.
const apart = "affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: web}}}]}}, "

// placed is the manifest of a workload with more fields of its pods, as in a flow of YAML.
func (w *workload) placed(own, pod string) string {
	return strings.Replace(w.manifest("web", own, image), "terminationGracePeriodSeconds", pod+"terminationGracePeriodSeconds", 1)
}

// A pod that comes while an update pauses would lose its service for the time of the pull.
func TestImagesArePulledForAPodThatIsCreatedInTheMiddleOfAnUpdate(t *testing.T) {
	t.Parallel()
	w := &workload{fixture: newFixture(t), kind: "Deployment", ref: "deployment/web"}
	w.needsTwoNodes(t)
	w.input(w.placed("replicas: 1,", apart), "apply")
	first := w.ready(1)[0].Spec.NodeName
	w.follows(", partition: 100%")
	w.run("set", "image", w.ref, "app="+newImage)
	w.says(refitv1alpha1.ConditionProgressing, metav1.ConditionTrue, refitv1alpha1.ReasonPartition)
	w.run("scale", w.ref, "--replicas=2")
	before := w.ready(2)
	w.setsPolicy(`"partition":null`)
	ended := map[string]*metav1.Time{}
	for i, pod := range w.updated(before, newImage, 1) {
		var jobs v1beta1.ImagePullJobList
		w.check(w.List(t.Context(), &jobs, client.InNamespace(w.namespace)), "list ImagePullJobs")
		for _, job := range jobs.Items {
			for _, node := range job.Spec.Selector.Names {
				ended[node] = job.Status.CompletionTime
			}
		}
		if len(jobs.Items) != 2 || len(ended) != 2 {
			t.Fatalf("%d ImagePullJobs on nodes %v; the first pod is on %s", len(jobs.Items), ended, first)
		}
		started, pulled := status(&pod, "app").State.Running.StartedAt, ended[pod.Spec.NodeName]
		if pulled == nil || started.Before(pulled) {
			t.Errorf("pod %d on %s was updated at %s, and its image pulled at %s", i, pod.Spec.NodeName, started, pulled)
		}
	}
}

// It is not parallel, since the daemon is everybody's. The daemon continues the pull when it has started again.
func TestAPullBeforeAnUpdateIsWaitedForWhileTheDaemonRestarts(t *testing.T) {
	w := &workload{fixture: newFixture(t), kind: "Deployment", ref: "deployment/web"}
	host, node := w.registry(map[string]served{"slow": {Size: layer, Fault: fakeregistry.Fault{BytesPerSecond: layer / 10}}}), w.registryNode()
	w.input(w.placed("replicas: 1,", "nodeSelector: {kubernetes.io/hostname: "+node+"}, "), "apply")
	before := w.ready(1)
	w.follows("")
	w.run("set", "image", w.ref, "app="+host+"/slow:v1")
	w.says(refitv1alpha1.ConditionProgressing, metav1.ConditionTrue, refitv1alpha1.ReasonPullingImages)
	w.pulling(1)
	w.kubectlOrFail(t.Context(), "", "delete", "pod", w.daemonOn(node).Name, "--namespace="+systemNamespace)
	w.setsPolicy(`"progressDeadlineSeconds":300`) // it is looked at while the daemon is not ready
	w.says(refitv1alpha1.ConditionProgressing, metav1.ConditionTrue, refitv1alpha1.ReasonPullingImages)
	w.untouched(&before[0], "app")
	w.await("end of the pull", func(ctx context.Context) (bool, error) {
		var jobs v1beta1.ImagePullJobList
		err := w.List(ctx, &jobs, client.InNamespace(w.namespace))
		return len(jobs.Items) == 1 && jobs.Items[0].Status.Succeeded == 1, err
	})
	w.await("update of the pod", func(ctx context.Context) (bool, error) {
		pods, err := w.list(ctx)
		return len(pods) == 1 && containerOf(&pods[0], "app").Image == host+"/slow:v1", err
	})
	if events := w.events(t.Context(), "PrePullSkipped"); len(events) > 0 {
		t.Errorf("events: %v", events)
	}
}

// pulling waits until so many nodes pull an image.
func (w *workload) pulling(nodes int32) {
	w.t.Helper()
	w.await("the begin of a pull", func(ctx context.Context) (bool, error) {
		var jobs v1beta1.ImagePullJobList
		err := w.List(ctx, &jobs, client.InNamespace(w.namespace))
		return len(jobs.Items) == 1 && jobs.Items[0].Status.Active == nodes, err
	})
}

// Kubelet does not restart a container for its environment.
func TestEnvironmentFromAChangedLabelIsUpdatedInPlace(t *testing.T) {
	t.Parallel()
	for kind, own := range map[string]string{"Deployment": "replicas: 2,", "StatefulSet": "serviceName: web, replicas: 2,"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			w := newWorkload(t, kind, own)
			w.patches(`{"spec":{"template":{"metadata":{"labels":{"track":"stable"}},"spec":{"containers":[{"name":"app","env":[
				{"name":"TRACK","valueFrom":{"fieldRef":{"fieldPath":"metadata.labels['track']"}}}]}]}}}}`)
			w.rolledOut()
			before := w.ready(2)
			w.follows("")
			w.patches(`{"spec":{"template":{"metadata":{"labels":{"track":"canary"}}}}}`)
			after := w.updated(before, image, 1)
			for i := range after {
				if got := strings.TrimSpace(w.exec(after[i].Name, "app", "echo $TRACK")); got != "canary" {
					t.Errorf("pod %s has TRACK=%q", after[i].Name, got)
				}
			}
			w.once(after)
		})
	}
}

// once fails the test unless there is one request for each pod, and it has succeeded.
func (w *workload) once(pods []corev1.Pod) {
	w.t.Helper()
	var requests v1beta1.ContainerRecreateRequestList
	w.check(w.List(w.t.Context(), &requests, client.InNamespace(w.namespace)), "list ContainerRecreateRequests")
	if len(requests.Items) != len(pods) {
		w.t.Errorf("%d requests for %d pods", len(requests.Items), len(pods))
	}
	for i := range pods {
		at := slices.IndexFunc(requests.Items, func(r v1beta1.ContainerRecreateRequest) bool { return r.Spec.PodName == pods[i].Name })
		if at < 0 || !meta.IsStatusConditionTrue(requests.Items[at].Status.Conditions, v1beta1.ConditionSucceeded) {
			w.t.Errorf("pod %s: no request that has succeeded", pods[i].Name)
		}
	}
}
