package history_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	refitv1alpha1 "github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/test/chaos/history/entry"
	"github.com/refit-project/refit/test/chaos/history/verdict"
)

// shop is a Deployment of pods w0, w1, ... with a Service and the containers app, x1 and x2, of which two SidecarSets have injected the last
// two. What a client watches follows the pods after 50 ms. The events of a history must be in the order of their times.
type shop struct {
	*fixture
	uids      []string
	instances int
	rollouts  map[string]*refitv1alpha1.RestartRollout
}

const (
	grace   = 20 // of the pods, in seconds
	watches = 0.05
)

var shopLabels = map[string]string{"app": "web"}

func openShop(t *testing.T, replicas int) *shop {
	t.Helper()
	s := &shop{fixture: newFixture(t), rollouts: map[string]*refitv1alpha1.RestartRollout{}}
	s.deployment(0.5, replicas)
	for _, name := range []string{"x1", "x2"} {
		s.revision++
		set := &v1beta1.SidecarSet{
			TypeMeta:   metav1.TypeMeta{Kind: "SidecarSet", APIVersion: v1beta1.GroupVersion().String()},
			ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), ResourceVersion: fmt.Sprint(s.revision)},
		}
		set.Spec.Selector = &metav1.LabelSelector{MatchLabels: shopLabels}
		set.Spec.Containers = []v1beta1.SidecarContainer{{Container: corev1.Container{Name: name, Image: name + ":1"}}}
		set.Spec.UpdateStrategy.MaxUnavailable = new(intstr.FromInt32(1))
		set.Spec.UpdateStrategy.RecreatePolicy = v1beta1.RecreateEvict
		s.write(0.6, ref{"create", user, entry.SetResource, "", "", name}, 201, set)
	}
	for range replicas {
		s.arrive(1)
	}
	return s
}

func (s *shop) watch(seconds float64, kind string, object any) {
	s.t.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		s.t.Fatal(err)
	}
	s.line(&s.watched, entry.WatchedLine{At: at(seconds), Event: "MODIFIED", Kind: kind, Object: text})
}

func (s *shop) deployment(seconds float64, replicas int) {
	s.t.Helper()
	s.revision++
	object := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "chaos", Name: "web", ResourceVersion: fmt.Sprint(s.revision)}}
	object.Spec.Replicas, object.Spec.Selector = new(int32(replicas)), &metav1.LabelSelector{MatchLabels: shopLabels}
	s.watch(seconds, entry.KindWorkload, object)
}

// arrive creates a pod, which serves at once.
func (s *shop) arrive(seconds float64) (uid string) {
	s.t.Helper()
	uid = s.next()
	s.up(seconds+0.01*float64(len(s.uids)), uid)
	return uid
}

// begin creates a pod, which does not serve yet.
func (s *shop) begin(seconds float64) (uid string) {
	s.t.Helper()
	uid = s.next()
	s.down(seconds+0.01*float64(len(s.uids)), uid)
	return uid
}

// next is a pod of which nothing is stored.
func (s *shop) next() (uid string) {
	uid = fmt.Sprintf("w%d", len(s.uids))
	s.uids = append(s.uids, uid)
	pod := &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "chaos", Name: uid, UID: types.UID(uid), Labels: shopLabels, Annotations: map[string]string{v1beta1.AnnotationSidecarSetList: "x1,x2"}},
		Spec:       corev1.PodSpec{NodeName: "node-1", TerminationGracePeriodSeconds: new(int64(grace))},
	}
	for _, name := range []string{"app", "x1", "x2"} {
		c := corev1.Container{Name: name, Image: name + ":1"}
		if name != "app" {
			c.Env = []corev1.EnvVar{{Name: v1beta1.EnvSidecarInjected, Value: "true"}}
		}
		pod.Spec.Containers = append(pod.Spec.Containers, c)
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{Name: name, ContainerID: s.instance(), Image: c.Image})
	}
	s.pods[uid] = pod
	return uid
}

func (s *shop) instance() string {
	s.instances++
	return "containerd://" + id(fmt.Sprintf("c%d-", s.instances))
}

// shows is kubelet's next word on a pod, and what a client of the Service then sees.
func (s *shop) shows(seconds float64, uid string, change func(*corev1.Pod)) {
	s.t.Helper()
	s.stored(seconds, uid, "status", change)
	s.slice(seconds + watches)
}

func (s *shop) slice(seconds float64) {
	s.t.Helper()
	slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "chaos", Name: "web-1", Labels: map[string]string{discoveryv1.LabelServiceName: "web"}}}
	for _, uid := range s.uids {
		is := slices.ContainsFunc(s.pods[uid].Status.Conditions, func(c corev1.PodCondition) bool { return c.Status == corev1.ConditionTrue })
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
			TargetRef: &corev1.ObjectReference{UID: types.UID(uid)}, Conditions: discoveryv1.EndpointConditions{Ready: &is},
		})
	}
	s.watch(seconds, entry.KindEndpointSlice, slice)
}

func (s *shop) up(seconds float64, uids ...string) {
	s.t.Helper()
	for _, uid := range uids {
		s.shows(seconds, uid, func(p *corev1.Pod) { readiness(p, corev1.ConditionTrue) })
	}
}

func (s *shop) down(seconds float64, uids ...string) {
	s.t.Helper()
	for _, uid := range uids {
		s.shows(seconds, uid, func(p *corev1.Pod) { readiness(p, corev1.ConditionFalse) })
	}
}

// unready is a report of kubelet on a pod that is not ready, with when it ceased to be.
func (s *shop) unready(seconds float64, uid string, since float64) {
	s.t.Helper()
	s.shows(seconds, uid, func(p *corev1.Pod) {
		readiness(p, corev1.ConditionFalse)
		p.Status.Conditions[0].LastTransitionTime = metav1.NewTime(at(since))
	})
}

// started is a report of kubelet on a pod that is not ready, in which the next instance of a container has been started.
func (s *shop) started(seconds float64, uid, container string, begin, unreadySince float64) {
	s.t.Helper()
	s.shows(seconds, uid, func(p *corev1.Pod) {
		readiness(p, corev1.ConditionFalse)
		p.Status.Conditions[0].LastTransitionTime = metav1.NewTime(at(unreadySince))
		for i := range p.Status.ContainerStatuses {
			if status := &p.Status.ContainerStatuses[i]; status.Name == container {
				status.ContainerID, status.Image = s.instance(), p.Spec.Containers[i].Image
				status.State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(at(begin))}
			}
		}
	})
}

// starts shows the next instance of a container, in a pod that is not ready.
func (s *shop) starts(seconds float64, uid, container string) {
	s.t.Helper()
	s.shows(seconds, uid, func(p *corev1.Pod) {
		readiness(p, corev1.ConditionFalse)
		for i := range p.Status.ContainerStatuses {
			if status := &p.Status.ContainerStatuses[i]; status.Name == container {
				status.ContainerID, status.Image = s.instance(), p.Spec.Containers[i].Image
			}
		}
	})
}

// budget is a PodDisruptionBudget of all pods.
func (s *shop) budget(seconds float64, allowed, healthy, desired int32) {
	s.t.Helper()
	s.revision++
	object := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "chaos", Name: "web", ResourceVersion: fmt.Sprint(s.revision)}}
	object.Spec.Selector = &metav1.LabelSelector{MatchLabels: shopLabels}
	object.Status = policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: allowed, CurrentHealthy: healthy, DesiredHealthy: desired}
	s.watch(seconds, entry.KindBudget, object)
}

// rollout is the next version of a RestartRollout with maxUnavailable 1.
func (s *shop) rollout(seconds float64, name string, change func(*refitv1alpha1.RestartRollout)) {
	s.t.Helper()
	s.revision++
	r := s.rollouts[name]
	if r == nil {
		r = &refitv1alpha1.RestartRollout{
			TypeMeta:   metav1.TypeMeta{Kind: refitv1alpha1.KindRestartRollout, APIVersion: refitv1alpha1.GroupVersion().String()},
			ObjectMeta: metav1.ObjectMeta{Namespace: "chaos", Name: name, UID: types.UID(name)},
		}
		s.rollouts[name] = r
	}
	r.ResourceVersion = fmt.Sprint(s.revision)
	if change != nil {
		change(r)
	}
	s.write(seconds, ref{"patch", managerUser, entry.RolloutResource, "", "chaos", name}, 200, r)
}

func atMost(pods int32) func(*refitv1alpha1.RestartRollout) {
	return func(r *refitv1alpha1.RestartRollout) { r.Spec.MaxUnavailable = new(intstr.FromInt32(pods)) }
}

// orders is a request of a rollout for the app of a pod, of which the stop is recorded at once.
func (s *shop) orders(seconds float64, rollout, uid string) (request string) {
	s.t.Helper()
	s.revision++
	request = rollout + "-" + uid
	running := strings.TrimPrefix(s.pods[uid].Status.ContainerStatuses[0].ContainerID, "containerd://")
	r := &v1beta1.ContainerRecreateRequest{
		TypeMeta: metav1.TypeMeta{Kind: "ContainerRecreateRequest", APIVersion: v1beta1.GroupVersion().String()},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "chaos", Name: request, UID: types.UID(request), ResourceVersion: fmt.Sprint(s.revision), CreationTimestamp: metav1.NewTime(at(seconds)),
			Labels: map[string]string{v1beta1.LabelPodUID: uid, v1beta1.LabelNodeName: "node-1", refitv1alpha1.LabelRestartRollout: rollout},
		},
	}
	r.Spec.PodName = uid
	r.Spec.Containers = []v1beta1.ContainerRecreateRequestContainer{{
		Name: "app", StatusContext: &v1beta1.ContainerRecreateRequestContainerContext{ContainerID: "containerd://" + running},
	}}
	s.requests[request] = r
	s.write(seconds, ref{"create", managerUser, entry.RequestResource, "", "chaos", request}, 201, r)
	s.status(seconds+0.01, request, func(status *v1beta1.ContainerRecreateRequestStatus) { recreating(running)(status) })
	return request
}

func (s *shop) succeeds(seconds float64, request string) {
	s.t.Helper()
	s.complete(seconds, request, "")
}

// restarts is the whole restart of a pod for a rollout, which takes 5 s.
func (s *shop) restarts(seconds float64, rollout, uid string) {
	s.t.Helper()
	request := s.orders(seconds, rollout, uid)
	s.down(seconds+1, uid)
	s.starts(seconds+2, uid, "app")
	s.up(seconds+4, uid)
	s.succeeds(seconds+5, request)
}

// availability are the violations of the promises that a shop is about: of the others its histories say too little.
func (s *shop) availability() []verdict.Violation {
	s.t.Helper()
	return slices.DeleteFunc(s.check().Violations, func(v verdict.Violation) bool {
		return !slices.Contains([]string{"I17", "I18", "I19", "I20", "I21"}, v.Invariant)
	})
}
