package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	refitv1alpha1 "github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
)

// slowSidecar is one that is ready 20 s after its start: a busy machine needs that long until pods that are made not ready are.
func slowSidecar(name string) v1beta1.SidecarContainer {
	port := 8100 + int(name[0]) // the containers of a pod have one network
	c := shell(name, serving(port, obedient))
	c.VolumeMounts = nil
	c.ReadinessProbe = readiness(port, 20)
	return v1beta1.SidecarContainer{Container: c}
}

// sidecars creates SidecarSets of one slow sidecar each, and then a Deployment of pods that have them, with a Service. The names
// are the names of the sidecars; the name of a SidecarSet begins with the name of the namespace.
func sidecars(t *testing.T, replicas int32, change func(*v1beta1.SidecarSetSpec), names ...string) (*fixture, *endpoints) {
	t.Helper()
	s := newFixture(t)
	for _, name := range names {
		set := &v1beta1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: s.namespace + "-" + name}}
		set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
		set.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: s.namespace}}
		set.Spec.InjectionStrategy.FailurePolicy = v1beta1.InjectionFail
		set.Spec.Containers = []v1beta1.SidecarContainer{slowSidecar(name)}
		change(&set.Spec)
		s.check(s.Create(t.Context(), set), "create SidecarSet")
		t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), cleanTimeout)
			defer cancel()
			if t.Failed() {
				out, _ := s.kubectl(ctx, "", "get", "sidecarset", set.Name, "--output=yaml")
				t.Log(out)
			}
			if err := s.Delete(ctx, set); err != nil {
				t.Logf("clean: %v", err)
			}
		})
	}
	pod := s.podOf("web", shell("app", serving(8080, obedient)))
	pod.Spec.Containers[0].ReadinessProbe = readiness(8080, 0)
	labels := map[string]string{"app": "web"}
	web := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "web"}}
	web.Spec = appsv1.DeploymentSpec{
		Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod.Spec},
	}
	s.service("web")
	e := s.watchEndpoints("web")
	s.check(s.Create(t.Context(), web), "make Deployment")
	e.await(int(replicas))
	return s, e
}

// setsSidecar changes the spec of a SidecarSet of sidecars.
func (s *fixture) setsSidecar(name, patch string) {
	s.t.Helper()
	set := &v1beta1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: s.namespace + "-" + name}}
	s.check(s.Patch(s.t.Context(), set, client.RawPatch(types.JSONPatchType, []byte(patch))), "patch SidecarSet")
}

func imageOfSidecar(image string) string {
	return fmt.Sprintf(`[{"op":"replace","path":"/spec/containers/0/image","value":%q}]`, image)
}

// updated waits until all pods of SidecarSets are of the newest spec and ready. Several updates, one after another, may take longer
// than patience.
func (s *fixture) updated(replicas int32, names ...string) {
	s.t.Helper()
	for _, name := range names {
		err := until(s.t.Context(), 3*patience, func(ctx context.Context) (bool, error) {
			var set v1beta1.SidecarSet
			err := s.Get(ctx, client.ObjectKey{Name: s.namespace + "-" + name}, &set)
			return set.Status.ObservedGeneration == set.Generation && completed(replicas)(&set.Status), err
		})
		s.check(err, "await the update by SidecarSet %s", name)
	}
}

// blips makes the pods not ready that are ready now, all at the same time and for 4 s. While no pod is ready none of them may be
// taken out.
func (s *fixture) blips(e *endpoints) {
	s.t.Helper()
	var before []corev1.Pod
	for _, pod := range s.webs() {
		if condition(&pod, corev1.PodReady) == corev1.ConditionTrue && pod.DeletionTimestamp == nil {
			before = append(before, pod)
		}
	}
	s.inAll(before, goesAway)
	e.await(0)
	<-time.After(4 * time.Second)
	now, ready := map[types.UID]corev1.Pod{}, 0
	for _, pod := range s.webs() {
		now[pod.UID] = pod
		if condition(&pod, corev1.PodReady) == corev1.ConditionTrue && pod.DeletionTimestamp == nil {
			ready++
		}
	}
	var left []corev1.Pod
	for _, was := range before {
		is, found := now[was.UID]
		if found && is.DeletionTimestamp == nil {
			left = append(left, is)
		}
		if ready == 0 && (!found || is.DeletionTimestamp != nil || containerOf(&is, "log").Image != containerOf(&was, "log").Image) {
			s.t.Fatalf("pod %s is taken out while no pod is ready", was.Name)
		}
	}
	s.inAll(left, comesBack)
}

// webs are the pods of sidecars.
func (s *fixture) webs() []corev1.Pod {
	s.t.Helper()
	var list corev1.PodList
	s.check(s.List(s.t.Context(), &list, client.InNamespace(s.namespace), client.MatchingLabels{"app": "web"}), "list pods")
	return list.Items
}

// inAll runs a shell line in the container app of all pods at the same time.
func (s *fixture) inAll(pods []corev1.Pod, line string) {
	s.t.Helper()
	errs := make([]error, len(pods))
	var all sync.WaitGroup
	for i := range pods {
		all.Go(func() {
			if out, err := s.inContainer(s.t.Context(), pods[i].Name, "app", line); err != nil {
				errs[i] = fmt.Errorf("pod %s: %w: %s", pods[i].Name, err, out)
			}
		})
	}
	all.Wait()
	s.check(errors.Join(errs...), "run %q", line)
}

// 0 of 3 endpoints for 10 s: the pods that were not ready for 4 s had their sidecars replaced all at once.
func TestABlipDoesNotTakeAllSidecarsOut(t *testing.T) {
	t.Parallel()
	s, e := sidecars(t, 3, func(*v1beta1.SidecarSetSpec) {}, "log")
	s.setsSidecar("log", imageOfSidecar(newImage))
	e.await(2)
	s.blips(e)
	e.await(2)
	s.updated(3, "log")
	if least := e.leastAfter(2, 0); least < 2 {
		t.Errorf("%d of 3 endpoints are left", least)
	}
}

// 0 of 3 endpoints for 4 s and 1 for 14 s: the pods that were not ready for 4 s were evicted.
func TestABlipDoesNotEvictAllPods(t *testing.T) {
	t.Parallel()
	s, e := sidecars(t, 3, func(spec *v1beta1.SidecarSetSpec) { spec.UpdateStrategy.RecreatePolicy = v1beta1.RecreateEvict }, "log")
	s.run("create", "rolebinding", "evict", "--clusterrole=refit-pod-evicter", "--serviceaccount="+systemNamespace+":refit-manager")
	s.setsSidecar("log", `[{"op":"add","path":"/spec/containers/0/env","value":[{"name":"LEVEL","value":"debug"}]}]`)
	e.await(2)
	s.blips(e)
	e.await(2)
	s.updated(3, "log")
	if least := e.leastAfter(2, 0); least < 2 {
		t.Errorf("%d of 3 endpoints are left", least)
	}
}

// 0 of 2 endpoints for 14 s: each of the two SidecarSets updated another pod.
func TestTwoSidecarSetsKeepOnePodOfTwo(t *testing.T) {
	t.Parallel()
	first := 0
	s, e := sidecars(t, 2, func(spec *v1beta1.SidecarSetSpec) {
		operator := metav1.LabelSelectorOpExists // each begins with another pod
		if first++; first == 2 {
			operator = metav1.LabelSelectorOpDoesNotExist
		}
		spec.UpdateStrategy.PriorityStrategy = &v1beta1.UpdatePriorityStrategy{WeightPriority: []v1beta1.UpdatePriorityWeightTerm{{
			Weight: 10, MatchSelector: metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "first", Operator: operator}}},
		}}}
	}, "log", "audit")
	s.run("label", "pod", s.webs()[0].Name, "--namespace", s.namespace, "first=yes")
	for _, name := range []string{"log", "audit"} {
		s.setsSidecar(name, imageOfSidecar(newImage))
	}
	s.updated(2, "log", "audit")
	if least := e.least(2); least < 1 {
		t.Errorf("%d of 2 endpoints are left", least)
	}
}

// 1 of 3 endpoints for 9 s: the rollout restarted another pod than the one that the SidecarSet updated.
func TestASidecarSetAndARestartRolloutKeepTwoPodsOfThree(t *testing.T) {
	t.Parallel()
	s, e := sidecars(t, 3, func(*v1beta1.SidecarSetSpec) {}, "log")
	s.setsSidecar("log", imageOfSidecar(newImage))
	object := &refitv1alpha1.RestartRollout{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "web"}}
	object.Spec.TargetRef = &refitv1alpha1.WorkloadReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}
	object.Spec.Containers = refitv1alpha1.RolloutContainers("app")
	s.check(s.Create(t.Context(), object), "make RestartRollout")
	s.updated(3, "log")
	err := until(t.Context(), 3*patience, func(ctx context.Context) (bool, error) {
		err := s.Get(ctx, s.key("web"), object)
		return object.Status.CompletionTime != nil, err
	})
	s.check(err, "await the end of the RestartRollout")
	if least := e.least(3); least < 2 {
		t.Errorf("%d of 3 endpoints are left", least)
	}
}

// leastAfter is how few ready endpoints there were after they had come down to low and up to n again.
func (e *endpoints) leastAfter(n, low int) int {
	e.s.t.Helper()
	e.end()
	e.mu.Lock()
	defer e.mu.Unlock()
	least, down, up := n, false, false
	for _, r := range e.history {
		down = down || r.ready <= low && e.had(n+1, r)
		up = up || down && r.ready >= n
		if up {
			least = min(least, r.ready)
		}
	}
	return least
}

// had reports whether there were n ready endpoints before a reading.
func (e *endpoints) had(n int, before reading) bool {
	for _, r := range e.history {
		if r.at.Before(before.at) && r.ready >= n {
			return true
		}
	}
	return false
}
