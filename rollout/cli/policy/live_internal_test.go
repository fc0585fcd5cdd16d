package policy

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/console"
	"github.com/refit-project/refit/rollout/cli/board"
	"github.com/refit-project/refit/test/kit/screen"
)

// begun is a pod whose container app is replaced in place, by an update to a revision.
func begun(name, revision string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Annotations: map[string]string{
		v1beta1.AnnotationInPlaceUpdateState: fmt.Sprintf(`{"revision":%q,"updateTimestamp":"2026-11-26T12:00:00Z","updateImages":true,"lastContainerStatuses":{"app":{"imageID":"sha256:1"}},
		"refit":{"instances":{"app":{"containerID":"containerd://old"}}}}`, revision),
	}}}
	p.OwnerReferences = []metav1.OwnerReference{{Kind: "StatefulSet", Name: "web", UID: "web", Controller: new(true)}}
	p.Spec.NodeName, p.Spec.RestartPolicy = "node-1", corev1.RestartPolicyAlways
	p.Spec.Containers = []corev1.Container{{Name: "app", Image: "app:2"}}
	p.Status.Phase = corev1.PodRunning
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "app", ContainerID: "containerd://old", Image: "app:1", ImageID: "sha256:1", Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
	}}
	return p
}

// replaced is the pod after kubelet has replaced the container.
func replaced(p *corev1.Pod, ready bool) *corev1.Pod {
	p = p.DeepCopy()
	status := &p.Status.ContainerStatuses[0]
	status.ContainerID, status.Image, status.ImageID, status.Ready = "containerd://new", "app:2", "sha256:2", true
	condition := corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse}
	if ready {
		condition.Status = corev1.ConditionTrue
	}
	p.Status.Conditions = []corev1.PodCondition{condition, {Type: corev1.ContainersReady, Status: corev1.ConditionTrue}}
	return p
}

func updating() *v1alpha1.InPlaceUpdatePolicy {
	p := &v1alpha1.InPlaceUpdatePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	p.Status.UpdateRevision = "web-2"
	p.Status.Update = &v1alpha1.TemplateUpdate{Containers: []v1alpha1.UpdatedContainer{{Name: "app", Image: true}}}
	return p
}

func TestProgressOfAPod(t *testing.T) {
	t.Parallel()
	failed := updating()
	failed.Status.Failures = []v1alpha1.PodFailure{{Pod: "web-0", Reason: "ImagePullBackOff"}}
	for name, tc := range map[string]struct {
		pod    *corev1.Pod
		policy *v1alpha1.InPlaceUpdatePolicy
		want   board.Progress
		begun  bool
	}{
		"not begun":  {begun("web-0", "web-1"), updating(), board.Progress{}, false},
		"in between": {begun("web-0", "web-2"), updating(), board.Progress{State: "updating"}, true},
		"not ready":  {replaced(begun("web-0", "web-2"), false), updating(), board.Progress{State: "not ready"}, true},
		"ready":      {replaced(begun("web-0", "web-2"), true), updating(), board.Progress{State: "updated", Ended: true}, true},
		"failed":     {begun("web-0", "web-2"), failed, board.Progress{State: "failed: ImagePullBackOff", Ended: true, Failed: true}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, begun := progressOf(tc.pod, tc.policy, tc.policy.Status.Update, time.Now())
			if tc.begun {
				tc.want.Containers, tc.want.Old = []string{"app"}, map[string]string{"app": "containerd://old"}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || begun != tc.begun {
				t.Errorf("begun %t (-want +got):\n%s", begun, diff)
			}
		})
	}
}

// The last line of the command has the message of the condition.
func TestBarOfAnUpdateThatHasEnded(t *testing.T) {
	t.Parallel()
	f := follower{verdict: verdictDone, why: "all pods have the template and are available"}
	if got := f.bar(updating()); !strings.HasSuffix(got, " failed") {
		t.Errorf("got %q", got)
	}
}

// One pod has the template, one is being updated, and one was not begun.
func TestTableOfAnUpdateOnATerminal(t *testing.T) {
	t.Parallel()
	terminal := screen.Open(t, 100, 24)
	l := &live{command: &command{Config: Config{Output: console.NewOutput(terminal.File, true)}}, board: board.New(), pods: map[string]*corev1.Pod{}}
	for _, pod := range []*corev1.Pod{begun("web-2", "web-2"), begun("web-1", "web-2"), begun("web-0", "web-1")} {
		l.pods[pod.Name] = pod
	}
	policy := updating()
	policy.Status.MatchedPods, policy.Status.UpdatedReadyPods, policy.Status.UpdatingPods = 3, 1, 1
	l.see(policy)
	l.pods["web-2"] = replaced(l.pods["web-2"], true)
	l.see(policy)
	l.progress(bar(policy, "Updating: 1 pod is left"), false)
	l.Output.EndRegion()
	got := strings.Join(terminal.Close().Lines(), "\n")
	got = regexp.MustCompile(` +[0-9]+\.[0-9]s`).ReplaceAllString(got, " Ns")
	got = regexp.MustCompile(`(?m) (Ns|-)( +(Ns|-))* +(updated|updating)$`).ReplaceAllString(got, " ... $4")
	const want = `POD    CONTAINER  OLD           NEW           TERM    START   READY   STATE
web-1  app        old           ... updating
web-2  app        old           new ... updated
[######--------------] 1 of 3 pods updated and ready, 1 being updated, 0 failed: Updating: 1 pod i…`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("on the screen (-want +got):\n%s", diff)
	}
}
