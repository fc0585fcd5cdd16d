package rollout_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
)

// The histories of this file have been outages of whole workloads.

// crash shows that kubelet waits before it starts the container again.
func crash(pod *corev1.Pod) {
	setReady(pod, false, start)
	pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
}

// healthy is a PodDisruptionBudget that is as strict as maxUnavailable 1 and whose status is true.
func healthy(f *fixture) *policyv1.PodDisruptionBudget {
	b := budget(0)
	b.Status.ExpectedPods = int32(len(f.observed.Pods))
	b.Status.DesiredHealthy = b.Status.ExpectedPods - 1
	for _, pod := range f.observed.Pods {
		if pod.Status.Conditions[0].Status == corev1.ConditionTrue {
			b.Status.CurrentHealthy++
		}
	}
	b.Status.DisruptionsAllowed = max(0, b.Status.CurrentHealthy-b.Status.DesiredHealthy)
	return b
}

func TestYoungPodsAreRestartedOneAfterAnother(t *testing.T) {
	t.Parallel()
	f := newFixture(4, func(s *v1alpha1.RestartRolloutSpec) { s.MinReadySeconds = new(int32(20)) })
	for _, pod := range f.observed.Pods {
		setReady(pod, true, start.Add(-4*time.Second))
	}
	if started := f.look(); len(started) != 0 { // four are not available yet
		t.Fatalf("%v", started)
	}
	f.now = start.Add(16 * time.Second)
	if started := f.look(); !cmp.Equal(started, []string{"web-3"}) {
		t.Fatalf("%v", started)
	}
	f.restart("web-3")
	if f.now = f.now.Add(5 * time.Second); f.look() != nil {
		t.Error("another pod is restarted while the first has not been ready for long enough")
	}
}

// Containers that have just been started may serve before they have been stopped.
func TestPodsThatHaveJustBeenStartedAreRestartedOneAfterAnother(t *testing.T) {
	t.Parallel()
	f := newFixture(3)
	for _, pod := range f.observed.Pods {
		setReady(pod, false, start.Add(-2*time.Second))
	}
	f.observed.Budgets = []*policyv1.PodDisruptionBudget{healthy(f)}
	f.rollout.Spec.PodDisruptionBudgetPolicy = v1alpha1.PodDisruptionBudgetIgnore // nothing is healthy, so that it would allow nothing
	if started := f.look(); !cmp.Equal(started, []string{"web-2"}) {
		t.Fatalf("%v", started)
	}
	for _, pod := range f.observed.Pods { // all are ready while the first is being stopped
		setReady(pod, true, start.Add(5*time.Second))
	}
	if started := f.look(); len(started) != 0 {
		t.Errorf("%v", started)
	}
	f.rollout.Spec.PodDisruptionBudgetPolicy = v1alpha1.PodDisruptionBudgetRespect
	f.observed.Budgets = []*policyv1.PodDisruptionBudget{healthy(f)}
	if started := f.look(); len(started) != 0 {
		t.Errorf("%v", started)
	}
}

func TestAReadinessBlipOfAllPodsDoesNotRestartThemAtOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(3)
	f.look()
	for _, pod := range f.observed.Pods {
		setReady(pod, false, start)
	}
	if started := f.look(); len(started) != 0 {
		t.Fatalf("%v while the first pod is being restarted", started)
	}
	f.restart("web-2")
	setReady(f.pod("web-2"), false, start) // its new instance starts slowly
	if started := f.look(); len(started) != 0 {
		t.Errorf("%v while the first pod is not ready again", started)
	}
}

// A rollout of the template whose image cannot be pulled held up every restart, although all pods that the workload is to have were ready.
func TestASurplusPodThatIsStuckDoesNotHoldUpARestart(t *testing.T) {
	t.Parallel()
	f := newFixture(3)
	f.observed.Replicas = 3
	surplus := newPod(7, start.Add(time.Second))
	surplus.Status.ContainerStatuses[0] = corev1.ContainerStatus{Name: "app", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}}
	setReady(surplus, false, start.Add(time.Second))
	f.observed.Pods = append(f.observed.Pods, surplus)
	if started := f.look(); !cmp.Equal(started, []string{"web-2"}) {
		t.Fatalf("%v", started)
	}
	if started := f.look(); len(started) != 0 || f.rollout.Status.UnavailablePods != 1 {
		t.Errorf("%v beside the first, %d are said to be unavailable", started, f.rollout.Status.UnavailablePods)
	}
	setReady(f.pod("web-0"), false, start) // and now one is lacking
	f.restart("web-2")
	if started := f.look(); !cmp.Equal(started, []string{"web-0"}) {
		t.Errorf("%v", started)
	}
}

// Nothing said which pod held up the others.
func TestTheMessageNamesThePodsThatAreUnavailable(t *testing.T) {
	t.Parallel()
	f := newFixture(6)
	f.observed.Replicas = 7
	for _, name := range []string{"web-4", "web-1", "web-3", "web-0"} {
		setReady(f.pod(name), false, start)
	}
	f.look()
	f.look()
	want := "5 pods are left; 1 of 7 pods may be unavailable at a time; unavailable: web-0, web-1, web-3, 1 more, 1 missing"
	for _, c := range f.rollout.Status.Conditions {
		if c.Type == "Progressing" && c.Message != want {
			t.Errorf("got  %s\nwant %s", c.Message, want)
		}
	}
}

func TestADisruptionBudgetThatAllowsNothingHoldsAPodThatFlickers(t *testing.T) {
	t.Parallel()
	f := newFixture(3)
	setReady(f.pod("web-0"), false, start)
	strict := healthy(f)
	strict.Status.DesiredHealthy, strict.Status.DisruptionsAllowed = 3, 0
	f.observed.Budgets = []*policyv1.PodDisruptionBudget{strict}
	started := f.look()
	if _, reason := f.condition("Progressing"); len(started) != 0 || reason != "PodDisruptionBudget" {
		t.Errorf("%v, %s", started, reason)
	}
}

// others is what somebody else does to pods.
func TestWhatOthersDoToAPodCountsAsUnavailable(t *testing.T) {
	t.Parallel()
	foreign := func(f *fixture) *v1beta1.ContainerRecreateRequest {
		request := &v1beta1.ContainerRecreateRequest{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "foreign"}}
		request.Spec.PodName = "web-0"
		f.observed.Requests = append(f.observed.Requests, request)
		return request
	}
	record := func(ago time.Duration) string {
		return `{"revision":"r","updateTimestamp":"` + start.Add(-ago).Format(time.RFC3339) + `","lastContainerStatuses":{"log":{"imageID":"1"}},` +
			`"refit":{"instances":{"log":{"containerID":"containerd://web-0log","image":"log:1"}}}}`
	}
	for name, tt := range map[string]struct {
		act     func(*fixture)
		started []string
	}{
		"nothing":             {func(*fixture) {}, []string{"web-2"}},
		"a request of a user": {func(f *fixture) { foreign(f) }, nil},
		"one that has ended":  {func(f *fixture) { crr.Complete(&foreign(f).Status, crr.Outcome{}, 1, start) }, []string{"web-2"}},
		"of another rollout":  {func(f *fixture) { foreign(f).Labels = map[string]string{v1alpha1.LabelRestartRollout: "other"} }, nil},
		"an update in place": {func(f *fixture) {
			f.pod("web-0").Annotations = map[string]string{v1beta1.AnnotationInPlaceUpdateState: record(time.Minute)}
		}, nil},
		"of a SidecarSet": {func(f *fixture) {
			f.pod("web-0").Annotations = map[string]string{v1beta1.AnnotationSidecarSetInPlaceUpdateState: `{"log":` + record(time.Minute) + `}`}
		}, nil},
		"a change of the spec": {func(f *fixture) { f.pod("web-0").Generation, f.pod("web-0").Status.ObservedGeneration = 3, 2 }, nil},
		"another controller of the manager": {func(f *fixture) {
			f.observed.Begun = func(uid types.UID) bool { return uid == "web-0" }
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(3)
			tt.act(f)
			started := f.look()
			if tt.started == nil { // the pod itself may be restarted, since it is unavailable anyway
				if len(started) > 1 || len(started) == 1 && started[0] != "web-0" {
					t.Errorf("%v", started)
				}
				if f.rollout.Status.UnavailablePods != 1 {
					t.Errorf("%d pods are said to be unavailable", f.rollout.Status.UnavailablePods)
				}
			} else if !cmp.Equal(started, tt.started) {
				t.Errorf("%v, want %v", started, tt.started)
			}
		})
	}
}

func TestAPodOfAnotherWorkloadCountsForADisruptionBudgetOfBoth(t *testing.T) {
	t.Parallel()
	f := newFixture(3)
	f.observed.Budgets = []*policyv1.PodDisruptionBudget{healthy(f)}
	other := newPod(7, start.Add(-time.Hour))
	other.Name, other.UID = "db-0", "db-0"
	f.observed.Others = []*corev1.Pod{other}
	request := &v1beta1.ContainerRecreateRequest{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "foreign"}}
	request.Spec.PodName = "db-0"
	f.observed.Requests = append(f.observed.Requests, request)
	if started := f.look(); len(started) != 0 { // it is still ready, and the status of the budget does not show it
		t.Errorf("%v", started)
	}
	f.observed.Requests = nil
	if started := f.look(); !cmp.Equal(started, []string{"web-2"}) {
		t.Errorf("%v", started)
	}
}
