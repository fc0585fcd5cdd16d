package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/test/chaos/history/entry"
	"github.com/refit-project/refit/test/chaos/history/sidecarsetcheck"
)

// watched is a SidecarSet of pods of two Deployments, whose every version is judged.
type watched struct {
	*sidecarSet
	mu    sync.Mutex
	judge sidecarsetcheck.Follower
}

const perDeployment = 4

// newWatched injects by the webhook, as users do.
func newWatched(t *testing.T, maxUnavailable int) *watched {
	t.Helper()
	s := newFixture(t)
	w := &watched{sidecarSet: &sidecarSet{fixture: s}}
	set := s.sidecarSet("side", fmt.Sprintf("containers: [{name: log, %s}], updateStrategy: {maxUnavailable: %d}", sleeper, maxUnavailable))
	w.name = set.Name
	w.judge = sidecarsetcheck.Follower{SidecarSet: set.Name, Container: "log", MaxUnavailable: maxUnavailable}
	w.judge.Target(image, time.Now(), entry.Line{})
	s.knows(selected("side", s.podOf("probe", shell("app", obedient))), "log")
	pods, err := s.Watch(t.Context(), &corev1.PodList{}, client.InNamespace(s.namespace))
	s.check(err, "watch pods")
	var group sync.WaitGroup
	group.Go(func() {
		for event := range pods.ResultChan() {
			if pod, ok := event.Object.(*corev1.Pod); ok {
				w.mu.Lock()
				w.judge.See(sidecarsetcheck.Version{Pod: pod, Gone: event.Type == watch.Deleted, At: time.Now()})
				w.mu.Unlock()
			}
		}
	})
	t.Cleanup(func() {
		pods.Stop()
		group.Wait()
		if n := w.judge.Updates(); n < perDeployment {
			t.Errorf("only %d updates were seen", n)
		}
		for _, finding := range w.judge.Findings() {
			t.Error(finding)
		}
	})
	for _, name := range []string{"a", "b"} {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}}
		pod := selected("side", s.podOf("", shell("app", obedient)))
		pod.Labels["app"] = name
		d.Spec.Replicas, d.Spec.Selector = new(int32(perDeployment)), &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}
		d.Spec.Template = corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: pod.Labels}, Spec: pod.Spec}
		s.check(s.Create(t.Context(), d), "create Deployment")
	}
	w.reaches("to count the pods", completed(2*perDeployment))
	return w
}

// rollsOut changes the image, has something happen, and waits for the end.
func (w *watched) rollsOut(to string, meanwhile func()) {
	w.t.Helper()
	w.mu.Lock()
	w.judge.Target(to, time.Now(), entry.Line{})
	w.mu.Unlock()
	w.setsImage(to)
	meanwhile()
	w.reaches("to be completed with "+to, completed(2*perDeployment))
}

// updated waits until so many pods have the image.
func (w *watched) updated(to string, n int) {
	w.t.Helper()
	w.await(fmt.Sprintf("%d pods with %s", n, to), func(ctx context.Context) (bool, error) {
		var pods corev1.PodList
		err := w.List(ctx, &pods, client.InNamespace(w.namespace))
		found := 0
		for i := range pods.Items {
			if containerOf(&pods.Items[i], "log").Image == to {
				found++
			}
		}
		return found >= n, err
	})
}

// killsLeader deletes the manager that leads at once, and returns when another one leads.
func (s *fixture) killsLeader() {
	s.t.Helper()
	holder := func(ctx context.Context) (string, error) {
		lease := &coordinationv1.Lease{}
		err := s.Get(ctx, client.ObjectKey{Namespace: systemNamespace, Name: "refit-manager"}, lease)
		if err != nil || lease.Spec.HolderIdentity == nil {
			return "", err
		}
		return *lease.Spec.HolderIdentity, nil
	}
	was, err := holder(s.t.Context())
	s.check(err, "read the Lease")
	s.t.Cleanup(func() { // for the webhooks of the next test
		if err := until(context.WithoutCancel(s.t.Context()), patience, s.admits); err != nil {
			s.t.Errorf("wait for the manager: %v", err)
		}
	})
	var pods corev1.PodList
	s.check(s.List(s.t.Context(), &pods, managerPods()...), "list managers")
	for i := range pods.Items {
		if name := pods.Items[i].Name; len(was) > len(name) && was[:len(name)] == name {
			s.check(s.Delete(s.t.Context(), &pods.Items[i], client.GracePeriodSeconds(0)), "kill the manager that leads")
		}
	}
	s.await("another leader", func(ctx context.Context) (bool, error) {
		now, err := holder(ctx)
		return err == nil && now != "" && now != was, nil
	})
}

// The manager that leads is killed again and again while a rollout is under way: the budgets hold, no pod is updated twice,
// and no application is restarted.
func TestRolloutSurvivesTheDeathOfItsManager(t *testing.T) {
	w := newWatched(t, 2)
	w.rollsOut(newImage, func() {
		for _, n := range []int{1, 3, 6} {
			w.updated(newImage, n)
			w.killsLeader()
		}
	})
}

// Two managers lead, as after a suspended one is resumed: leader election does not exclude that. No pod is updated twice, no application
// is restarted, and the rollout ends. Each manager enforces maxUnavailable based on what it has seen of the other.
func TestRolloutByTwoLeadersAtOnce(t *testing.T) {
	const leaders = 2
	w := newWatched(t, 1)
	w.mu.Lock()
	w.judge.MaxUnavailable = leaders
	w.mu.Unlock()
	second := exec.CommandContext(context.WithoutCancel(t.Context()), filepath.Join(root(), "dist", "refit-manager"), "--leader-elect=false", "--webhook-port=29443", "--metrics-addr=0", "--health-addr=127.0.0.1:29081",
		"--pod-probes=false", "--images=false", "--container-recreate-requests=false", "--restart-rollouts=false", "--namespace="+systemNamespace)
	w.check(second.Start(), "start a second leader")
	ended := make(chan error, 1)
	go func() { ended <- second.Wait() }()
	t.Cleanup(func() {
		_ = second.Process.Signal(syscall.SIGTERM)
		if err := <-ended; err != nil {
			t.Logf("the second leader: %v", err)
		}
	})
	for _, to := range []string{newImage, image, newImage} {
		w.rollsOut(to, func() {})
	}
	select {
	case err := <-ended:
		ended <- err
		t.Errorf("the second leader has ended: %v", err)
	default:
	}
}

// Pods that are deleted while they are updated, and a container image that does not exist, hold up nothing for good.
func TestRolloutSurvivesDeletedPodsAndABrokenImage(t *testing.T) {
	t.Parallel()
	w := newWatched(t, 2)
	w.rollsOut(newImage, func() {
		for n := range 3 {
			w.updated(newImage, n+1)
			var pods corev1.PodList
			w.check(w.List(t.Context(), &pods, client.InNamespace(w.namespace)), "list pods")
			for i := range pods.Items {
				if containerOf(&pods.Items[i], "log").Image == newImage {
					w.check(client.IgnoreNotFound(w.Delete(t.Context(), &pods.Items[i], client.GracePeriodSeconds(0))), "delete a pod under way")
					break
				}
			}
		}
	})
	w.mu.Lock()
	w.judge.Target(missingImage, time.Now(), entry.Line{})
	w.mu.Unlock()
	w.setsImage(missingImage)
	set := w.get(t.Context())
	w.await("the failure", func(ctx context.Context) (bool, error) {
		set = w.get(ctx)
		return set.Status.ObservedGeneration == set.Generation && set.Status.FailedPods == 2, nil
	})
	if set.Status.UpdatedPods != 2 {
		text, _ := json.Marshal(set.Status)
		t.Errorf("status %s; at most two pods may have the broken image", text)
	}
	w.rollsOut(image, func() {})
}

// The pod of a StatefulSet that was evicted is created again only when it has ended. Until then the next manager that leads evicts no other.
func TestEvictionsSurviveTheDeathOfTheManager(t *testing.T) {
	s := newFixture(t)
	set := s.sidecarSet("side", "containers: [{name: log, "+sleeper+"}], updateStrategy: {recreatePolicy: Evict}")
	pod := selected("side", s.podOf("", shell("app", stubborn)))
	pod.Spec.TerminationGracePeriodSeconds = new(int64(300))
	s.knows(selected("side", s.podOf("probe", shell("app", stubborn))), "log")
	s.run("create", "rolebinding", "evict", "--clusterrole=refit-pod-evicter", "--serviceaccount="+systemNamespace+":refit-manager")
	const n = 3
	object := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "db"}}
	object.Spec.Replicas, object.Spec.Selector, object.Spec.PodManagementPolicy = new(int32(n)), &metav1.LabelSelector{MatchLabels: pod.Labels}, appsv1.ParallelPodManagement
	object.Spec.Template = corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: pod.Labels}, Spec: pod.Spec}
	s.check(s.Create(t.Context(), object), "create StatefulSet")
	status := func(what string, done func(*v1beta1.SidecarSetStatus) bool) {
		t.Helper()
		s.await("SidecarSet "+what, func(ctx context.Context) (bool, error) {
			err := s.Get(ctx, client.ObjectKeyFromObject(set), set)
			return set.Status.ObservedGeneration == set.Generation && done(&set.Status), err
		})
	}
	status("to count the pods", func(status *v1beta1.SidecarSetStatus) bool { return status.UpdatedReadyPods == n })
	ending := func() (names []string) {
		var pods corev1.PodList
		s.check(s.List(t.Context(), &pods, client.InNamespace(s.namespace)), "list pods")
		for i := range pods.Items {
			if pods.Items[i].DeletionTimestamp != nil {
				names = append(names, pods.Items[i].Name)
			}
		}
		return names
	}
	s.run("patch", "sidecarset", set.Name, "--type=json", `--patch=[{"op":"add","path":"/spec/containers/0/env","value":[{"name":"LEVEL","value":"debug"}]}]`)
	s.await("an eviction", func(context.Context) (bool, error) { return len(ending()) > 0, nil })
	first := ending()
	s.killsLeader()
	s.run("patch", "sidecarset", set.Name, "--type=merge", `--patch={"spec":{"updateStrategy":{"minReadySeconds":1}}}`)
	status("to be seen by the next manager", func(*v1beta1.SidecarSetStatus) bool { return true })
	if got := ending(); len(first) != 1 || !slices.Equal(got, first) {
		t.Fatalf("%v are being deleted, at first %v, with maxUnavailable 1", got, first)
	}
	s.run("delete", "pod", first[0], "--force", "--grace-period=0")
	s.await("the next eviction", func(context.Context) (bool, error) {
		got := ending()
		return len(got) == 1 && got[0] != first[0], nil
	})
}
