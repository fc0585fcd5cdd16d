package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	refitv1alpha1 "github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
)

// deployment makes one with so many ready pods.
func (s *fixture) deployment(name string, replicas int) []corev1.Pod {
	s.t.Helper()
	return s.deploymentOf(s.podOf(name, shell("app", obedient), shell("log", obedient)), replicas, nil)
}

// restart is kubectl-refit restart; it returns what was said, and the exit code.
func (s *fixture) restart(args ...string) (string, int) {
	s.t.Helper()
	return s.refit(append([]string{"restart", "--timeout", patience.String()}, args...)...)
}

// refit is kubectl-refit in the test's namespace; it returns what was said, and the exit code.
func (s *fixture) refit(args ...string) (string, int) {
	s.t.Helper()
	out, code, err := s.runTool(s.t.Context(), args...)
	s.check(err, "run kubectl-refit")
	return out, code
}

// command runs kubectl-refit, which has to end with the code and to say the words.
func (s *fixture) command(code int, words []string, args ...string) string {
	s.t.Helper()
	out, is := s.refit(args...)
	if is != code {
		s.t.Errorf("kubectl refit %s: exit code %d, want %d:\n%s", strings.Join(args, " "), is, code, out)
	}
	for _, word := range words {
		if !strings.Contains(out, word) {
			s.t.Errorf("kubectl refit %s: no %q in:\n%s", strings.Join(args, " "), word, out)
		}
	}
	return out
}

// runTool is refit for goroutines that may not end the test.
func (s *fixture) runTool(ctx context.Context, args ...string) (out string, code int, err error) {
	path, err := tool()
	if err != nil {
		return "", 0, fmt.Errorf("build kubectl-refit: %w", err)
	}
	command := exec.CommandContext(ctx, path, append(args, "--namespace", s.namespace)...)
	command.Env = os.Environ()
	text, err := command.CombinedOutput()
	if exit := (&exec.ExitError{}); errors.As(err, &exit) {
		err = nil
	}
	return string(text), command.ProcessState.ExitCode(), err
}

// unavailable counts, until stop is called, how many of the pods with that label were not ready at a time.
func (s *fixture) unavailable(app string) (stop func() int) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	changes, err := s.Watch(ctx, &corev1.PodList{}, client.InNamespace(s.namespace), client.MatchingLabels{"app": app})
	s.check(err, "watch pods")
	most := 0
	var done sync.WaitGroup
	done.Go(func() {
		down := map[string]bool{}
		for event := range changes.ResultChan() {
			pod, ok := event.Object.(*corev1.Pod)
			if !ok || event.Type == watch.Deleted {
				continue
			}
			if delete(down, pod.Name); condition(pod, corev1.PodReady) != corev1.ConditionTrue {
				down[pod.Name] = true
			}
			most = max(most, len(down))
		}
	})
	return func() int {
		changes.Stop()
		cancel()
		done.Wait()
		return most
	}
}

func (s *fixture) rollouts(ctx context.Context) []refitv1alpha1.RestartRollout {
	s.t.Helper()
	var list refitv1alpha1.RestartRolloutList
	s.check(s.List(ctx, &list, client.InNamespace(s.namespace)), "list RestartRollouts")
	return list.Items
}

func TestRestartOfADeploymentKeepsItsPodsAndItsBudget(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	before := s.deployment("web", 5)
	stop := s.unavailable("web")
	out, code := s.restart("deployment/web", "-c", "app", "--max-unavailable=2", "--reason=stale connections")
	most := stop()
	if code != 0 || !strings.Contains(out, "5 of 5 pods have been restarted") {
		t.Fatalf("exit code %d:\n%s", code, out)
	}
	if most > 2 {
		t.Errorf("%d pods were not ready at a time", most)
	}
	for i := range before {
		s.restarted(&before[i], "app", 1)
		s.untouched(&before[i], "log")
	}
	object := s.rollouts(t.Context())[0]
	user := object.Annotations[v1beta1.AnnotationRequestedBy]
	var requests v1beta1.ContainerRecreateRequestList
	s.check(s.List(t.Context(), &requests, client.InNamespace(s.namespace), client.MatchingLabels{refitv1alpha1.LabelRestartRollout: string(object.UID)}), "list requests")
	if len(requests.Items) != 5 {
		t.Errorf("%d requests", len(requests.Items))
	}
	for _, request := range requests.Items {
		if a := request.Annotations; user == "" || a[v1beta1.AnnotationRequestedBy] != user || a[v1beta1.AnnotationReason] != "stale connections" {
			t.Errorf("requested by %q: %v", user, a)
		}
	}
	// Kubelet removes an instance that has ended, with its log, if it collects garbage before the next one has started: it keeps one that
	// does not run. That is once a minute, so not for all pods.
	logged := false
	for i := range before {
		out, code = s.refit("why", before[i].Name)
		if code != 0 || !strings.Contains(out, "requested by "+user+": stale connections") || !strings.Contains(out, "has not been restarted") {
			t.Errorf("exit code %d:\n%s", code, out)
		}
		logged = logged || strings.Contains(out, "TERM")
	}
	if !logged {
		t.Errorf("no log of a previous instance:\n%s", out)
	}
	s.run("wait", "--for=condition=Succeeded", "restartrollout/"+object.Name, "--timeout=1s")
	s.check(s.Delete(t.Context(), &object), "delete rollout")
	s.await("its requests to be deleted", func(ctx context.Context) (bool, error) {
		err := s.List(ctx, &requests, client.InNamespace(s.namespace))
		return len(requests.Items) == 0, err
	})
}

func TestDisruptionBudgetHoldsUpARestartUntilItAllowsIt(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	before := s.deployment("web", 2)
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "strict"}}
	budget.Spec = policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromInt32(2)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}
	s.check(s.Create(t.Context(), budget), "make PodDisruptionBudget")
	if out, code := s.restart("deployment/web", "-c", "app", "--dry-run"); code != 0 || !strings.Contains(out, "2 pods would be restarted") {
		t.Errorf("exit code %d:\n%s", code, out)
	}
	out, code := s.restart("deployment/web", "-c", "app", "--timeout=5s")
	if code != 124 || !strings.Contains(out, "PodDisruptionBudget strict allows no more disruptions") || !strings.Contains(out, "kubectl refit rollout pause restartrollout/") {
		t.Errorf("exit code %d:\n%s", code, out)
	}
	for i := range before {
		s.untouched(&before[i], "app")
	}
	s.check(s.Delete(t.Context(), budget), "delete PodDisruptionBudget")
	s.awaitRollout("succeeds", func(o *refitv1alpha1.RestartRollout) bool {
		return meta.IsStatusConditionTrue(o.Status.Conditions, refitv1alpha1.ConditionSucceeded)
	})
}

func (s *fixture) awaitRollout(what string, done func(*refitv1alpha1.RestartRollout) bool) {
	s.t.Helper()
	s.await("the rollout "+what, func(ctx context.Context) (bool, error) {
		list := s.rollouts(ctx)
		return len(list) == 1 && done(&list[0]), nil
	})
}

func TestRestartRolloutPausesAndLeavesThePartition(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	s.deployment("web", 3)
	if out, code := s.restart("deployment/web", "-c", "app", "--partition=2", "--wait=false"); code != 0 {
		t.Fatalf("exit code %d:\n%s", code, out)
	}
	reason := func(o *refitv1alpha1.RestartRollout) string {
		if c := meta.FindStatusCondition(o.Status.Conditions, refitv1alpha1.ConditionProgressing); c != nil {
			return c.Reason
		}
		return ""
	}
	s.awaitRollout("leaves two pods", func(o *refitv1alpha1.RestartRollout) bool {
		return o.Status.RestartedPods == 1 && reason(o) == refitv1alpha1.ReasonPartition
	})
	name := s.rollouts(t.Context())[0].Name
	s.run("patch", "restartrollout", name, "--type=merge", `--patch={"spec":{"partition":0,"paused":true}}`)
	s.awaitRollout("is paused", func(o *refitv1alpha1.RestartRollout) bool { return reason(o) == refitv1alpha1.ReasonPaused })
	s.run("patch", "restartrollout", name, "--type=merge", `--patch={"spec":{"paused":false}}`)
	s.awaitRollout("restarts the others", func(o *refitv1alpha1.RestartRollout) bool {
		return o.Status.RestartedPods == 3 && o.Status.CompletionTime != nil
	})
}

func TestWrongRolloutsAreRefusedOrFailWithTheReason(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	before := s.deployment("web", 2)
	for name, tt := range map[string]struct {
		args []string
		code int
		word string
	}{
		"no such container":  {[]string{"deployment/web", "-c", "nope"}, 2, `have no container "nope"`},
		"which container":    {[]string{"deployment/web"}, 2, "app, log"},
		"no such deployment": {[]string{"deployment/gone", "-c", "app"}, 1, "not found"},
		"no pods":            {[]string{"-l", "app=gone", "-c", "app"}, 1, "no pod in namespace "},
		"max-unavailable":    {[]string{"deployment/web", "-c", "app", "--max-unavailable=0"}, 2, "--max-unavailable=0: want a number of at least 1"},
		"reason":             {[]string{"deployment/web", "-c", "app", "--reason=two\nlines"}, 2, "one line of printable characters"},
		"container twice":    {[]string{"deployment/web", "-c", "app", "-c", "app"}, 2, "Duplicate value"},
		"pod's container":    {[]string{"pod/" + before[0].Name, "-c", "nope"}, 2, "nope"},
	} {
		if out, code := s.restart(tt.args...); code != tt.code || !strings.Contains(out, tt.word) {
			t.Errorf("%s: exit code %d:\n%s", name, code, out)
		}
	}
	for i := range before {
		s.untouched(&before[i], "app")
	}
}

func TestRestartOfAPodShowsItsInstances(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	before := s.deployment("web", 1)
	out, code := s.restart("pod/"+before[0].Name, "-c", "app")
	if code != 0 || !strings.Contains(out, "restarts 0 -> 1") {
		t.Fatalf("exit code %d:\n%s", code, out)
	}
	s.restarted(&before[0], "app", 1)
	s.untouched(&before[0], "log")
	out, code = s.restart("pod/"+before[0].Name, "-c", "app", "-o", "json") // the object as it is at the end
	if code != 0 || !containsAll(out, []string{`"kind": "ContainerRecreateRequest"`, `"phase": "Completed"`, `"reason": "Succeeded"`}) || strings.Contains(out, "managedFields") {
		t.Errorf("exit code %d:\n%s", code, out)
	}
}
