package missed_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/rollout/budget"
	"github.com/refit-project/refit/sidecarset/missed"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func TestWhyAPodWasNotInjected(t *testing.T) {
	t.Parallel()
	set := &v1beta1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: "log", CreationTimestamp: metav1.NewTime(start)}}
	set.Spec.Containers = []v1beta1.SidecarContainer{{Container: corev1.Container{Name: "agent"}}, {Container: corev1.Container{Name: "mesh"}}}
	set.Spec.Containers[1].UpgradeStrategy.UpgradeType = v1beta1.HotUpgrade
	set.Spec.InitContainers = []v1beta1.SidecarContainer{{Container: corev1.Container{Name: "native", RestartPolicy: new(corev1.ContainerRestartPolicyAlways)}}}
	agent := corev1.Container{Name: "agent", Env: []corev1.EnvVar{{Name: v1beta1.EnvSidecarInjected, Value: "true"}}}
	hot := corev1.Container{Name: "mesh-2", Env: agent.Env}
	native := corev1.Container{Name: "native", Env: agent.Env}
	for name, tc := range map[string]struct {
		age         time.Duration
		annotations map[string]string
		containers  []corev1.Container
		initial     []corev1.Container
		disabled    bool
		want        missed.Reason
		message     string
	}{
		"younger":                  {age: -time.Second, want: missed.NotReached},
		"of the same second":       {want: missed.NotReached},
		"older":                    {age: time.Second, want: missed.Older},
		"namespace is excluded":    {disabled: true, want: missed.Excluded},
		"static":                   {annotations: map[string]string{corev1.MirrorPodAnnotationKey: "x"}, want: missed.Mirror},
		"opted out":                {annotations: map[string]string{v1beta1.AnnotationSidecarSetSkipped: `{"log":"why not"}`}, want: missed.Skipped, message: "why not"},
		"another was skipped":      {annotations: map[string]string{v1beta1.AnnotationSidecarSetSkipped: `{"mesh":"why not"}`}, want: missed.NotReached},
		"an annotation of nothing": {annotations: map[string]string{v1beta1.AnnotationSidecarSetSkipped: `x`}, want: missed.NotReached},
		"has the sidecars":         {containers: []corev1.Container{agent}, want: missed.Detached},
		"has a hot sidecar":        {containers: []corev1.Container{hot}, want: missed.Detached},
		"has a native sidecar":     {initial: []corev1.Container{native}, want: missed.Detached},
		"a container of that name": {containers: []corev1.Container{{Name: "agent"}}, want: missed.NotReached},
		"a sidecar of another one": {containers: []corev1.Container{{Name: "proxy", Env: agent.Env}}, want: missed.NotReached},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(start.Add(-tc.age)), Annotations: tc.annotations}}
			pod.Spec.Containers, pod.Spec.InitContainers = tc.containers, tc.initial
			got := missed.Judge(pod, set, &budget.Pod{Ready: true}, tc.disabled)
			if tc.message == "" {
				tc.message = string(tc.want)
			}
			if got.Reason != tc.want || got.Message != tc.message || got.Workload != "" {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// cluster is two workloads of three pods that were not injected.
type cluster struct {
	t        *testing.T
	now      time.Time
	pods     map[types.NamespacedName]missed.Pod
	injected map[string]missed.Workload
	repair   missed.Repair
	evicted  []string
}

func newCluster(t *testing.T) *cluster {
	c := &cluster{t: t, now: start.Add(time.Hour), pods: map[types.NamespacedName]missed.Pod{}, injected: map[string]missed.Workload{}}
	for _, workload := range []string{"a", "b"} {
		for i := range 3 {
			c.pods[key(workload, i)] = missed.Pod{Reason: missed.NotReached, Workload: workload, Created: metav1.NewTime(start.Add(time.Duration(i) * time.Second)), Ready: true}
		}
	}
	return c
}

func key(workload string, i int) types.NamespacedName {
	return types.NamespacedName{Namespace: "shop", Name: fmt.Sprintf("%s-%d", workload, i)}
}

func (c *cluster) workload(name string) missed.Workload {
	w := c.injected[name]
	for _, pod := range c.pods {
		if pod.Workload == name {
			w.Pods++
			switch {
			case pod.UnderWay:
				w.UnderWay++
			case pod.Ready:
				w.Ready++
			}
		}
	}
	return w
}

// next evicts a pod, if it may be.
func (c *cluster) next() bool {
	c.t.Helper()
	key, found, again := c.repair.Next(maps.All(c.pods), c.workload, c.now)
	if !found {
		return false
	}
	if !again.IsZero() {
		c.t.Error("a pod, and a time")
	}
	pod := c.pods[key]
	c.repair.Evicted(key, types.UID(key.Name), pod.Workload, maps.All(c.pods), c.workload(pod.Workload).Pods, c.now)
	delete(c.pods, key)
	c.evicted = append(c.evicted, key.Name)
	return true
}

func (c *cluster) replaced(workload string, pods, ready int) {
	c.injected[workload] = missed.Workload{Pods: pods, Ready: ready}
}

func TestOnePodIsEvictedAtATime(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	for n, workload := range []string{"a", "b", "a", "b", "a", "b"} {
		if !c.next() {
			t.Fatalf("nothing is evicted after %v", c.evicted)
		}
		if got := c.evicted[n]; got != key(workload, n/2).Name {
			t.Errorf("%s is evicted after %v", got, c.evicted[:n])
		}
		if c.next() {
			t.Fatal("another one is evicted before there is a replacement")
		}
		c.replaced(workload, n/2+1, n/2)
		if c.next() {
			t.Fatal("another one is evicted before the replacement is ready")
		}
		c.replaced(workload, n/2+1, n/2+1)
	}
	if c.next() || len(c.evicted) != 6 {
		t.Errorf("evicted %v", c.evicted)
	}
}

func TestAWorkloadWithAPodThatIsNotReadyIsLeftAlone(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.replaced("a", 1, 0)
	if !c.next() || c.evicted[0] != "b-0" {
		t.Errorf("evicted %v", c.evicted)
	}
	c = newCluster(t)
	pod := c.pods[key("b", 2)]
	pod.Ready = false // costs nothing
	c.pods[key("b", 2)] = pod
	if !c.next() || c.evicted[0] != "b-2" {
		t.Errorf("evicted %v", c.evicted)
	}
}

// Of a workload one pod was evicted while another was being restarted: it was not ready for a moment.
func TestAPodThatIsNotReadyForAMomentIsNotEvictedBesideAnother(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		other, flickers missed.Pod // what differs
		want            string
	}{
		"nothing else":                        {missed.Pod{Ready: true}, missed.Pod{}, "b-2"},
		"another one is restarted":            {missed.Pod{Ready: true, UnderWay: true}, missed.Pod{}, ""},
		"it is restarted itself":              {missed.Pod{Ready: true}, missed.Pod{UnderWay: true}, ""},
		"it cannot become ready by itself":    {missed.Pod{Ready: true, UnderWay: true}, missed.Pod{Stuck: true}, "b-2"},
		"a ready one waits for the restarted": {missed.Pod{Ready: true, UnderWay: true}, missed.Pod{Ready: true}, ""},
	} {
		c := newCluster(t)
		maps.DeleteFunc(c.pods, func(key types.NamespacedName, _ missed.Pod) bool { return key.Name[0] == 'a' })
		for i, differs := range []missed.Pod{1: tt.other, 2: tt.flickers} {
			if i > 0 {
				pod := c.pods[key("b", i)]
				pod.Ready, pod.UnderWay, pod.Stuck = differs.Ready, differs.UnderWay, differs.Stuck
				c.pods[key("b", i)] = pod
			}
		}
		c.next()
		if got := strings.Join(c.evicted, " "); got != tt.want {
			t.Errorf("%s: evicted %q, want %q", name, got, tt.want)
		}
	}
}

// For example while the webhook cannot be reached: pods must not be evicted again and again.
func TestReplacementsThatMissTheirInjectionTooPauseTheRepair(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	pause := time.Duration(0)
	for n := range 4 {
		if !c.next() {
			t.Fatal("nothing is evicted")
		}
		c.pods[key(c.evicted[n][:1], 10+n)] = missed.Pod{Reason: missed.NotReached, Workload: c.evicted[n][:1], Created: metav1.NewTime(c.now.Truncate(time.Second)), Ready: true}
		_, found, again := c.repair.Next(maps.All(c.pods), c.workload, c.now)
		if found || again.Sub(c.now) != max(2*pause, time.Minute) {
			t.Fatalf("found %v, again in %s after %s", found, again.Sub(c.now), pause)
		}
		pause = again.Sub(c.now)
		c.now = again.Time
	}
	if len(c.evicted) != 4 {
		t.Errorf("evicted %v", c.evicted)
	}
}

func TestAWorkloadThatWasScaledDownDoesNotHoldTheOthersUpForEver(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.next()
	maps.DeleteFunc(c.pods, func(_ types.NamespacedName, pod missed.Pod) bool { return pod.Workload == "a" })
	_, found, again := c.repair.Next(maps.All(c.pods), c.workload, c.now)
	if found || !again.Equal(c.now.Add(5*time.Minute)) {
		t.Fatalf("found %v, again %s", found, again)
	}
	c.now = again.Time
	if !c.next() || c.evicted[1] != "b-0" {
		t.Errorf("evicted %v", c.evicted)
	}
}

func TestWhatIsNotRepairedByEviction(t *testing.T) {
	t.Parallel()
	for _, pod := range []missed.Pod{
		{Reason: missed.NotReached, Ready: true}, {Reason: missed.Skipped, Workload: "a"}, {Reason: missed.Excluded, Workload: "a"},
		{Reason: missed.Mirror, Workload: "a"}, {Reason: missed.Detached, Workload: "a"},
	} {
		c := &cluster{t: t, now: start, pods: map[types.NamespacedName]missed.Pod{key("a", 0): pod}, injected: map[string]missed.Workload{}}
		if c.next() {
			t.Errorf("evicted although %+v", pod)
		}
	}
}

// One pod that a PodDisruptionBudget keeps for ever is no reason to leave the others without their sidecars.
func TestAPodThatCannotBeEvictedHoldsUpNoOthers(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	kept := c.pods[key("a", 0)]
	kept.UID = "kept"
	c.pods[key("a", 0)] = kept
	for n, pause := range []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute} {
		first, found, _ := c.repair.Next(maps.All(c.pods), c.workload, c.now)
		if !found || first != key("a", 0) {
			t.Fatalf("attempt %d: %s, found %t", n, first, found)
		}
		again := c.repair.Refused("kept", c.now)
		if _, found, _ = c.repair.Next(maps.All(c.pods), c.workload, c.now); found || again != c.now.Add(time.Second) {
			t.Errorf("attempt %d: others are tried at once, and not at %s", n, again)
		}
		if next, found, _ := c.repair.Next(maps.All(c.pods), c.workload, again); !found || next == first {
			t.Errorf("attempt %d: after the refusal %s, found %t", n, next, found)
		}
		c.now = c.now.Add(pause)
	}
	for other := range c.pods {
		if other != key("a", 0) {
			delete(c.pods, other)
		}
	}
	c.repair.Refused("kept", c.now)
	if _, found, again := c.repair.Next(maps.All(c.pods), c.workload, c.now); found || !again.Equal(c.now.Add(8*time.Minute)) {
		t.Errorf("the only one left: found %t, again at %s", found, again)
	}
}
