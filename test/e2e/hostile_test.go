package e2e_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	largePods = 600
	// largeValue is the size of each of the three annotations of a large pod. The API server takes 256 KiB in all.
	largeValue = 80 << 10
	// startWithin is how long a manager may take until it is ready.
	startWithin = 30 * time.Second
)

// crashes counts the restarts of the manager's and the daemons' containers.
func (s *fixture) crashes() int32 {
	s.t.Helper()
	var pods corev1.PodList
	s.check(s.List(s.t.Context(), &pods, client.InNamespace(systemNamespace)), "list pods of Refit")
	var crashes int32
	for i := range pods.Items {
		for _, status := range statuses(&pods.Items[i]) {
			crashes += status.RestartCount
		}
	}
	return crashes
}

// answer returns the answer to a request that is refused. On a busy node the webhook may not answer within its timeout: then the
// request is refused too, and sent again.
func (s *fixture) answer(r *request) (answer error) {
	s.t.Helper()
	s.await("answer of the webhook for request "+r.Name, func(ctx context.Context) (bool, error) {
		answer = s.Create(ctx, r.DeepCopy())
		return !apierrors.IsInternalError(answer), nil
	})
	return answer
}

// TestHostileRequests sends what nobody means well with. Nothing crashes, and the next request is carried out.
func TestHostileRequests(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	elsewhere := newFixture(t)
	before := s.start(s.podOf("web", shell("app", obedient)))
	elsewhere.start(elsewhere.podOf("theirs", shell("app", obedient)))
	crashes := s.crashes()
	many := make([]string, 5000)
	for i := range many {
		many[i] = fmt.Sprintf("c-%d", i)
	}
	for name, tc := range map[string]struct {
		request *request
		words   []string
	}{
		"5,000 containers":                  {s.newRequest("r", "web/"+strings.Join(many, ",")), []string{"spec.containers", "5000", "at most 256"}},
		"256 containers that are not there": {s.newRequest("r", "web/"+strings.Join(many[:256], ",")), []string{"spec.containers[0].name", "not found in Pod web"}},
		"a megabyte of annotations":         {s.newRequest("r", "web/app", annotate("a", strings.Repeat("x", 1<<20))), []string{"metadata.annotations"}},
		"64 KiB of pod name":                {s.newRequest("r", strings.Repeat("a", 64<<10)+"/app"), []string{"spec.podName"}},
		"a pod of another namespace":        {s.newRequest("r", "theirs/app"), []string{"no found Pod named theirs in namespace " + s.namespace}},
		"labels of another node and pod":    {s.newRequest("r", "web/app", label("crr.apps.kruise.io/node-name", "x"), label("crr.apps.kruise.io/pod-uid", "y")), []string{"metadata.labels"}},
	} {
		err := s.answer(tc.request)
		if err == nil || !containsAll(err.Error(), tc.words) {
			t.Errorf("%s: answer %.500v, want a refusal with %q", name, err, tc.words)
		}
	}
	traversal := s.newRequest("r", "x/app")
	traversal.Spec.PodName = "../" + elsewhere.namespace + "/theirs"
	if err := s.Create(t.Context(), traversal); err == nil || !strings.Contains(err.Error(), "spec.podName") {
		t.Errorf("a path to another namespace: answer %v", err)
	}
	if code, body := s.post(`{"apiVersion":"apps.kruise.io/v1beta1","kind":"ContainerRecreateRequest","metadata":{"name":"r"},"spec":{"podName":"web","containers":[{"name":"` + "\xff\xfe" + `"}]}}`); code < 400 || code >= 500 {
		t.Errorf("invalid UTF-8: HTTP status %d: %s", code, body)
	}
	var list corev1.PodList
	s.check(s.List(t.Context(), &list, client.InNamespace(s.namespace)), "list pods")
	if code, body := s.post("[" + strings.Repeat("[", 100_000)); code < 400 || code >= 500 {
		t.Errorf("deep nesting: HTTP status %d: %s", code, body)
	}
	s.untouched(before, "app")
	s.ask("r", "web/app")
	s.succeeded("r")
	s.restarted(before, "app", 1)
	if got := s.crashes(); got != crashes {
		t.Errorf("%d crashes of manager or daemon", got-crashes)
	}
}

// TestManyContainersOfOnePod has a pod of many containers and restarts them all with one request.
func TestManyContainersOfOnePod(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	var containers []corev1.Container
	var names []string
	for i := range 12 {
		name := fmt.Sprintf("c-%d", i)
		names = append(names, name)
		containers = append(containers, shell(name, obedient))
	}
	before := s.start(s.podOf("web", containers...))
	s.ask("r", "web/"+strings.Join(names, ","))
	s.succeeded("r")
	for _, name := range names {
		s.restarted(before, name, 1)
	}
}

// post sends bytes that no client library would.
func (s *fixture) post(body string) (int, string) {
	s.t.Helper()
	api, err := rest.HTTPClientFor(s.config)
	s.check(err, "make client")
	url := s.config.Host + "/apis/apps.kruise.io/v1beta1/namespaces/" + s.namespace + "/containerrecreaterequests"
	call, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, url, bytes.NewReader([]byte(body)))
	s.check(err, "make request")
	call.Header.Set("Content-Type", "application/json")
	response, err := api.Do(call)
	s.check(err, "post")
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, 1<<16))
	s.check(err, "read answer")
	return response.StatusCode, string(answer)
}

// TestAManagerStartsBesideLargePods has refit-manager started again while there are 600 pods with 240 kB of annotations each, in keys that
// it reads and in keys that it does not: it is ready within 30 s and stays below its memory limit. It is not parallel: others restart the
// programs of Refit.
func TestAManagerStartsBesideLargePods(t *testing.T) {
	if os.Getenv("REFIT_HOSTILE") != "long" {
		t.Skip("make hostile runs it")
	}
	s := newFixture(t)
	s.createLargePods()
	s.check(s.DeleteAllOf(t.Context(), &corev1.Pod{}, append([]client.DeleteAllOfOption{client.GracePeriodSeconds(0)}, deleteAll(managerPods())...)...), "delete managers")
	s.check(until(t.Context(), 2*patience, s.admits), "wait for the managers")
	var pods corev1.PodList
	s.await("status of each manager", func(ctx context.Context) (bool, error) { // one may respond before another one is created
		pods = corev1.PodList{}
		err := s.List(ctx, &pods, managerPods()...)
		unready := func(pod corev1.Pod) bool { return condition(&pod, corev1.PodReady) != corev1.ConditionTrue }
		return len(pods.Items) > 1 && !slices.ContainsFunc(pods.Items, unready), err
	})
	for i := range pods.Items {
		pod := &pods.Items[i]
		status := pod.Status.ContainerStatuses[0]
		if status.RestartCount != 0 || status.State.Running == nil {
			t.Errorf("manager %s: %d restarts, %+v", pod.Name, status.RestartCount, status.LastTerminationState)
			continue
		}
		ready := slices.IndexFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady })
		took := pod.Status.Conditions[ready].LastTransitionTime.Sub(status.State.Running.StartedAt.Time)
		t.Logf("manager %s was ready %s after its start", pod.Name, took)
		if took > startWithin {
			t.Errorf("manager %s was ready after %s, want at most %s", pod.Name, took, startWithin)
		}
	}
	// Both have read all pods when a request in the namespace is carried out.
	before := s.start(s.podOf("web", shell("app", obedient)))
	s.ask("r", "web/app")
	s.succeeded("r")
	s.restarted(before, "app", 1)
}

// createLargePods creates pods that no node has room for.
func (s *fixture) createLargePods() {
	s.t.Helper()
	value := strings.Repeat("x", largeValue)
	names := make(chan int)
	var work sync.WaitGroup
	for range 8 {
		work.Go(func() {
			for n := range names {
				pod := s.podOf(fmt.Sprintf("large-%d", n), shell("app", obedient))
				pod.Spec.NodeSelector = map[string]string{"refit.dev/no-such-node": "true"}
				pod.Annotations = map[string]string{"kruise.io/sidecarset-x": value, "sidecarset.refit.dev/x": value, "example.com/x": value}
				if err := s.Create(s.t.Context(), pod); err != nil {
					s.t.Errorf("create pod: %v", err)
				}
			}
		})
	}
	for n := range largePods {
		names <- n
	}
	close(names)
	work.Wait()
	var pods corev1.PodList
	s.check(s.List(s.t.Context(), &pods, client.InNamespace(s.namespace), client.Limit(largePods)), "list pods")
	if len(pods.Items) < largePods {
		s.t.Fatalf("%d pods were created", len(pods.Items))
	}
}

// deleteAll are the options of a list as options of a deletion.
func deleteAll(options []client.ListOption) []client.DeleteAllOfOption {
	all := &client.ListOptions{}
	all.ApplyOptions(options)
	return []client.DeleteAllOfOption{&client.DeleteAllOfOptions{ListOptions: *all}}
}
