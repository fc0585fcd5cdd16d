package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/kubelet"
)

// kruiseState is the annotation inplace-update-state with the fields that OpenKruise knows: what others are in it, it drops.
type kruiseState struct {
	Revision                 string                       `json:"revision"`
	UpdateTimestamp          metav1.Time                  `json:"updateTimestamp"`
	LastContainerStatuses    map[string]map[string]string `json:"lastContainerStatuses"`
	UpdateEnvFromMetadata    bool                         `json:"updateEnvFromMetadata,omitempty"`
	UpdateImages             bool                         `json:"updateImages,omitempty"`
	NextContainerImages      map[string]string            `json:"nextContainerImages,omitempty"`
	NextContainerRefMetadata map[string]metav1.ObjectMeta `json:"nextContainerRefMetadata,omitempty"`
	PreCheckBeforeNext       *kruisePreCheck              `json:"preCheckBeforeNext,omitempty"`
	ContainerBatchesRecord   []kruiseBatch                `json:"containerBatchesRecord,omitempty"`
}

type kruisePreCheck struct {
	ContainersRequiredReady []string `json:"containersRequiredReady,omitempty"`
}

type kruiseBatch struct {
	Timestamp  metav1.Time `json:"timestamp"`
	Containers []string    `json:"containers"`
}

// write makes a change of the pod together with the state, by an update of the whole object, as OpenKruise does.
func (s *fixture) writeAsKruise(name string, state *kruiseState, change func(*corev1.Pod)) {
	s.t.Helper()
	text, err := json.Marshal(state)
	s.check(err, "encode state")
	s.check(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		pod := s.pod(name)
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, v1beta1.AnnotationInPlaceUpdateState, string(text))
		change(pod)
		return s.Update(s.t.Context(), pod)
	}), "update pod %s", name)
}

// drainAsKruise closes the readiness gate, with Ready in the same write.
func (s *fixture) drainAsKruise(name string) {
	s.t.Helper()
	s.gate(name, corev1.ConditionFalse, corev1.PodReady)
}

// The controller of a workload dies between its batches: the first container has its new image, the second waits for it, with
// an image and an annotation that its environment refers to. The same change by kubectl-refit ends it, with one restart each.
func TestUpdateThatAWorkloadOfOpenKruiseHasBegunIsContinued(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	pod := s.podOf("web", shell("log", obedient), level(shell("app", obedient)))
	pod.Annotations = map[string]string{"level": "info"}
	before := s.gated(pod)
	s.drainAsKruise("web")
	now := metav1.Now()
	state := &kruiseState{
		Revision: "web-5d7f", UpdateTimestamp: now, UpdateImages: true, UpdateEnvFromMetadata: true,
		LastContainerStatuses:    map[string]map[string]string{"log": {"imageID": status(before, "log").ImageID}},
		NextContainerImages:      map[string]string{"app": newImage},
		NextContainerRefMetadata: map[string]metav1.ObjectMeta{"app": {Annotations: map[string]string{"level": "debug"}}},
		PreCheckBeforeNext:       &kruisePreCheck{ContainersRequiredReady: []string{"log"}},
		ContainerBatchesRecord:   []kruiseBatch{{Timestamp: now, Containers: []string{"log"}}},
	}
	s.writeAsKruise("web", state, func(pod *corev1.Pod) { pod.Spec.Containers[0].Image = newImage })
	s.updates("image", "pod/web", "log="+newImage, "app="+newImage)
	after := s.restarted(before, "log", 1)
	s.restarted(before, "app", 1)
	s.same(before)
	if !podReady(after) || condition(after, v1beta1.ReadinessGateInPlaceUpdateReady) != corev1.ConditionTrue {
		t.Error("the pod is not back in its Services")
	}
	if got := strings.Fields(s.exec("web", "app", "echo $LEVEL; cat /etc/image-tag")); strings.Join(got, " ") != "debug 1.35" {
		t.Errorf("LEVEL and image are %q", got)
	}
}

// While OpenKruise's grace period lasts, from when the pod has left its Services, nothing is written; then all of it is, in one
// restart.
func TestGracePeriodOfOpenKruiseIsKept(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	pod := s.podOf("web", level(shell("app", obedient)), shell("other", obedient))
	pod.Annotations = map[string]string{"level": "info"}
	before := s.gated(pod)
	const grace = 6 * time.Second
	left := time.Now().Truncate(time.Second) // the condition of the gate has whole seconds
	s.drainAsKruise("web")
	s.writeAsKruise("web", &kruiseState{Revision: "web-5d7f", UpdateTimestamp: metav1.Now()}, func(pod *corev1.Pod) {
		pod.Annotations[v1beta1.AnnotationInPlaceUpdateGrace] = fmt.Sprintf(`{"revision":"web-5d7f","containerImages":{"app":%q},`+
			`"containerRefMetadata":{"app":{"creationTimestamp":null,"annotations":{"level":"debug"}}},"updateEnvFromMetadata":true,"graceSeconds":%d,`+
			`"oldTemplate":{"metadata":{"creationTimestamp":null},"spec":{"containers":null}}}`, newImage, int(grace.Seconds()))
	})
	s.updates("image", "pod/web", "app="+newImage)
	if took := time.Since(left); took < grace {
		t.Errorf("done %s after the pod has left its Services", took)
	}
	s.restarted(before, "app", 1)
	s.untouched(before, "other")
	if got := strings.Fields(s.exec("web", "app", "echo $LEVEL; cat /etc/image-tag")); strings.Join(got, " ") != "debug 1.35" {
		t.Errorf("LEVEL and image are %q", got)
	}
	if _, ok := s.pod("web").Annotations[v1beta1.AnnotationInPlaceUpdateGrace]; ok {
		t.Error("the grace annotation has been left")
	}
}

// kubectl-refit ends while the pod drains. A controller of OpenKruise finds a state with a next batch, writes it, and judges by
// the daemon's annotation when it is done.
func TestUpdateThatRefitHasBegunIsContinuedByAWorkloadOfOpenKruise(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	before := s.gated(s.podOf("web", level(shell("app", obedient)), shell("other", obedient)))
	s.reportOf("web", "app")
	s.leaves("to drain", func(pod *corev1.Pod) bool {
		return pod.Annotations[v1beta1.AnnotationInPlaceUpdateState] != "" && condition(pod, v1beta1.ReadinessGateInPlaceUpdateReady) == corev1.ConditionFalse
	}, "image", "pod/web", "app="+newImage, "--drain-seconds=600")
	s.untouched(before, "app")
	pod := s.pod("web")
	state := &kruiseState{}
	s.check(json.Unmarshal([]byte(pod.Annotations[v1beta1.AnnotationInPlaceUpdateState]), state), "read the state")
	if state.NextContainerImages["app"] != newImage || condition(pod, v1beta1.ReadinessGateInPlaceUpdateReady) != corev1.ConditionFalse {
		t.Fatalf("state %+v", state)
	}
	state.LastContainerStatuses = map[string]map[string]string{"app": {"imageID": status(pod, "app").ImageID}}
	state.ContainerBatchesRecord = append(state.ContainerBatchesRecord, kruiseBatch{Timestamp: metav1.Now(), Containers: []string{"app"}})
	state.NextContainerImages, state.PreCheckBeforeNext = nil, nil
	s.writeAsKruise("web", state, func(pod *corev1.Pod) { pod.Spec.Containers[0].Image = newImage })
	s.replaced(before, "app")
	after := s.reportOf("web", "app") // with kubelet's hash of the new image, or the test fails
	if hash := kubelet.ContainerHash(&after.Spec.Containers[0]); hash == kubelet.ContainerHash(&before.Spec.Containers[0]) {
		t.Errorf("hash %s", hash)
	}
	s.gate("web", corev1.ConditionTrue)
	s.awaitPod("web", "to be ready", podReady)
	s.restarted(before, "app", 1)
	if out, code := s.set("image", "pod/web", "app="+newImage); code != 0 || !strings.Contains(out, "unchanged") {
		t.Errorf("exit code %d: %s", code, out)
	}
}

// A CloneSet has an image pulled on the nodes of its pods before it updates them.
func TestImagePullJobOfACloneSetPullsWhereItsPodsAre(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	pod := s.podOf("web", shell("app", obedient))
	pod.Labels = map[string]string{"app": "web", "controller-revision-hash": "web-old"}
	is := s.start(pod)
	job := &v1alpha1.ImagePullJob{ObjectMeta: metav1.ObjectMeta{
		Namespace: s.namespace, Name: "web-5d7f-app", Labels: map[string]string{"controller-revision-hash": "web-5d7f", "app": "web"},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "apps.kruise.io/v1alpha1", Kind: "CloneSet", Name: "web", UID: is.UID, Controller: new(true), BlockOwnerDeletion: new(true),
		}},
	}}
	job.Spec.Image = newImage
	job.Spec.Parallelism = new(intstr.FromInt32(1))
	job.Spec.PodSelector = &v1beta1.ImagePullJobPodSelector{LabelSelector: metav1.LabelSelector{
		MatchLabels:      map[string]string{"app": "web"},
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "controller-revision-hash", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"web-5d7f"}}},
	}}
	job.Spec.PullPolicy = &v1beta1.PullPolicy{TimeoutSeconds: new(int32(300)), BackoffLimit: new(int32(1))}
	job.Spec.CompletionPolicy = v1beta1.CompletionPolicy{Type: v1beta1.CompletionAlways, TTLSecondsAfterFinished: new(int32(600))}
	job.Spec.SandboxConfig = &v1beta1.SandboxConfig{Labels: map[string]string{"app": "web"}, Annotations: map[string]string{"cni": "none"}}
	s.check(s.Create(t.Context(), job), "create ImagePullJob")
	s.await("end of the job", func(ctx context.Context) (bool, error) {
		err := s.Get(ctx, client.ObjectKeyFromObject(job), job)
		return job.Status.CompletionTime != nil, err
	})
	if job.Status.Desired != 1 || job.Status.Succeeded != 1 || job.Status.Failed != 0 || s.onNode(is.Spec.NodeName, newImage) == "" {
		t.Errorf("%+v", job.Status)
	}
}

// What a kruise-manager writes into a NodeImage is pulled, and pulled again when it raises the version; it reads phase,
// progress, version and imageID.
func TestNodeImageOfAKruiseManagerIsServed(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	const repository, tag = "docker.io/library/nginx", "1.22"
	node := s.nodes[len(s.nodes)-1]
	write := func(ctx context.Context, change func(*v1alpha1.NodeImage)) error {
		return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
			object := &v1alpha1.NodeImage{}
			if err := s.Get(ctx, client.ObjectKey{Name: node}, object); err != nil {
				return err
			}
			change(object)
			return s.Update(ctx, object)
		})
	}
	t.Cleanup(func() {
		_ = write(context.WithoutCancel(t.Context()), func(object *v1alpha1.NodeImage) { delete(object.Spec.Images, repository) })
	})
	for version := range int64(2) {
		s.check(write(t.Context(), func(object *v1alpha1.NodeImage) {
			if object.Spec.Images == nil {
				object.Spec.Images = map[string]v1beta1.ImageSpec{}
			}
			object.Spec.Images[repository] = v1beta1.ImageSpec{
				SandboxConfig: &v1beta1.SandboxConfig{Labels: map[string]string{"app": "web"}},
				Tags: []v1beta1.ImageTagSpec{{
					Tag: tag, CreatedAt: new(metav1.Now()), Version: version, ImagePullPolicy: v1beta1.PullAlways,
					PullPolicy: &v1beta1.ImageTagPullPolicy{
						TimeoutSeconds: new(int32(600)), BackoffLimit: new(int32(3)), TTLSecondsAfterFinished: new(int32(720)), ActiveDeadlineSeconds: new(int64(1200)),
					},
				}},
			}
		}), "write NodeImage %s", node)
		s.await(fmt.Sprintf("pull of version %d", version), func(ctx context.Context) (bool, error) {
			object := &v1alpha1.NodeImage{}
			if err := s.Get(ctx, client.ObjectKey{Name: node}, object); err != nil {
				return false, err
			}
			for _, is := range object.Status.ImageStatuses[repository].Tags {
				if is.Tag == tag && is.Version == version && is.CompletionTime != nil {
					if is.Phase != v1beta1.ImagePhaseSucceeded || is.Progress != 100 || !strings.HasPrefix(is.ImageID, repository+"@sha256:") {
						return false, fmt.Errorf("%+v", is)
					}
					return true, nil
				}
			}
			return false, nil
		})
	}
}
