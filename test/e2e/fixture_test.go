package e2e_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// patience is long, so that a busy machine fails no test; what is to be fast is compared with something.
	patience = 150 * time.Second
	// Tests look often at first, and less often at what takes long: they look at the same time, and each look costs the API server.
	pollInterval, maxPollInterval = 150 * time.Millisecond, 500 * time.Millisecond
	cleanTimeout                  = 30 * time.Second
	image                         = "docker.io/library/busybox:1.36"
)

// What the containers of the tests run. Both write the signals they get to their log.
const (
	obedient = `trap 'echo TERM; exit 0' TERM; echo started; while :; do sleep 1000 & wait $!; done`
	stubborn = `trap 'echo TERM' TERM; echo started; while :; do sleep 1000 & wait $!; done`
)

// fixture is a test's part of the cluster: a namespace of its own.
type fixture struct {
	*cluster
	t         *testing.T
	namespace string
	virtual   *virtualNode // nil: no test of virtual nodes
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	if os.Getenv("REFIT_E2E") == "" {
		t.Skip("set REFIT_E2E=1 and KUBECONFIG to run the end-to-end tests; make test does it on a cluster of its own")
	}
	cluster, err := connect()
	if err != nil {
		t.Fatalf("no cluster to test on: %v", err)
	}
	cluster.needsItsVersion(t)
	s := &fixture{cluster: cluster, t: t}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-"}}
	s.check(s.Create(t.Context(), namespace), "make namespace")
	s.namespace = namespace.Name
	t.Cleanup(s.clean)
	// Pods are refused until the service account is there.
	s.await("service account default", func(ctx context.Context) (bool, error) {
		err := s.Get(ctx, s.key("default"), &corev1.ServiceAccount{})
		return err == nil, client.IgnoreNotFound(err)
	})
	return s
}

// clean takes everything away at once; what it leaves goes with the cluster.
func (s *fixture) clean() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.t.Context()), cleanTimeout)
	defer cancel()
	if s.t.Failed() {
		out, _ := s.kubectl(ctx, "", "get", "crr,pods,events", "--namespace", s.namespace, "--output=wide")
		s.t.Logf("namespace %s at the end:\n%s", s.namespace, out)
		out, _ = s.kubectl(ctx, "", "get", "crr", "--namespace", s.namespace, "--output=yaml")
		s.t.Log(out)
	}
	if err := s.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(s.namespace), client.GracePeriodSeconds(0)); err != nil {
		s.t.Logf("clean: %v", err)
	}
	if err := s.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}); err != nil {
		s.t.Logf("clean: %v", err)
	}
}

func (s *fixture) key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: s.namespace, Name: name}
}

func (s *fixture) check(err error, format string, args ...any) {
	s.t.Helper()
	if err != nil {
		s.t.Fatalf("%s: %v", fmt.Sprintf(format, args...), err)
	}
}

// await looks again and again until done. An error ends it.
func (s *fixture) await(what string, done func(context.Context) (bool, error)) {
	s.t.Helper()
	if err := until(s.t.Context(), patience, done); err != nil {
		s.t.Fatalf("wait for %s: %v", what, err)
	}
}

// until is await for those who outlive the test. A momentary refusal, as while a webhook's Service moves to another
// pod, is done's to forgive.
func until(ctx context.Context, limit time.Duration, done func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for interval := pollInterval; ; interval = min(interval*5/4, maxPollInterval) {
		ok, err := done(ctx)
		if ctx.Err() != nil { // which the error would only say in other words
			return fmt.Errorf("not within %s", limit)
		}
		if err != nil || ok {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not within %s", limit)
		case <-time.After(interval):
		}
	}
}

// run is kubectl in the fixture's namespace; it has to succeed.
func (s *fixture) run(args ...string) string {
	s.t.Helper()
	out, err := s.kubectl(s.t.Context(), "", append([]string{"--namespace", s.namespace}, args...)...)
	if err != nil {
		s.t.Fatalf("kubectl %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return out
}

// exec runs a shell line in a container. A container that has just started may not be known to everybody yet.
func (s *fixture) exec(pod, container, line string) string {
	s.t.Helper()
	var out string
	err := until(s.t.Context(), patience, func(ctx context.Context) (bool, error) {
		var err error
		out, err = s.inContainer(ctx, pod, container, line)
		return err == nil, nil
	})
	s.check(err, "exec %q in container %s: %s", line, container, out)
	return out
}

// events are the messages of the namespace's Events with that reason.
func (s *fixture) events(ctx context.Context, reason string) []string {
	s.t.Helper()
	messages, err := s.listEvents(ctx, reason)
	s.check(err, "list events")
	return messages
}

func (s *fixture) listEvents(ctx context.Context, reason string) ([]string, error) {
	var list corev1.EventList
	if err := s.List(ctx, &list, client.InNamespace(s.namespace)); err != nil {
		return nil, err
	}
	var messages []string
	for _, event := range list.Items {
		if event.Reason == reason {
			messages = append(messages, event.Message)
		}
	}
	return messages, nil
}

// awaitEvent waits for an Event, which is sent after what it tells of.
func (s *fixture) awaitEvent(reason string, words ...string) {
	s.t.Helper()
	s.await(fmt.Sprintf("event %s with %q", reason, words), func(ctx context.Context) (bool, error) {
		messages, err := s.listEvents(ctx, reason)
		return slices.ContainsFunc(messages, func(m string) bool { return containsAll(m, words) }), err
	})
}

func containsAll(text string, words []string) bool {
	for _, word := range words {
		if !strings.Contains(text, word) {
			return false
		}
	}
	return true
}

func containsAny(text string, words ...string) bool {
	return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(text, word) })
}

// remove deletes an object at once and waits until it is gone.
func (s *fixture) remove(object client.Object) {
	s.t.Helper()
	s.await("end of "+object.GetName(), func(ctx context.Context) (bool, error) {
		err := s.Delete(ctx, object, client.GracePeriodSeconds(0))
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
}
