package e2e_test

import (
	"context"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
)

type request = v1beta1.ContainerRecreateRequest

// newRequest names the pod and its containers as "pod/container,container".
func (s *fixture) newRequest(name, of string, changes ...func(*request)) *request {
	pod, containers, _ := strings.Cut(of, "/")
	r := &request{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.namespace}}
	r.Spec.PodName = pod
	for container := range strings.SplitSeq(containers, ",") {
		r.Spec.Containers = append(r.Spec.Containers, v1beta1.ContainerRecreateRequestContainer{Name: container})
	}
	for _, change := range changes {
		change(r)
	}
	return r
}

// ask creates a request.
func (s *fixture) ask(name, of string, changes ...func(*request)) *request {
	s.t.Helper()
	r := s.newRequest(name, of, changes...)
	s.check(s.Create(s.t.Context(), r), "make request %s", name)
	return r
}

func (s *fixture) awaitRequest(name, what string, done func(*request) bool) *request {
	s.t.Helper()
	r := &request{}
	s.await("request "+name+" "+what, func(ctx context.Context) (bool, error) {
		err := s.Get(ctx, s.key(name), r)
		return err == nil && done(r), err
	})
	return r
}

// ended waits until a request is completed.
func (s *fixture) ended(name string) *request {
	s.t.Helper()
	return s.awaitRequest(name, "to be completed", func(r *request) bool {
		return r.Status.Phase == v1beta1.ContainerRecreateRequestCompleted
	})
}

// succeeded waits until a request is completed and checks that it says so everywhere.
func (s *fixture) succeeded(name string) *request {
	s.t.Helper()
	r := s.ended(name)
	s.outcome(r, metav1.ConditionTrue, "Succeeded")
	if r.Status.Message != "" {
		s.t.Errorf("request %s: message %q, which clients read as a failure", name, r.Status.Message)
	}
	for _, state := range r.Status.ContainerRecreateStates {
		if state.Phase != v1beta1.ContainerRecreateRequestSucceeded {
			s.t.Errorf("request %s: container %s is %s: %s", name, state.Name, state.Phase, state.Message)
		}
	}
	return r
}

// failed is the same for a failure, whose message holds the words.
func (s *fixture) failed(name, reason string, words ...string) *request {
	s.t.Helper()
	r := s.ended(name)
	s.outcome(r, metav1.ConditionFalse, reason)
	if r.Status.Message == "" || !containsAll(r.Status.Message, words) {
		s.t.Errorf("request %s: message %q, want one with %q", name, r.Status.Message, words)
	}
	return r
}

func (s *fixture) outcome(r *request, succeeded metav1.ConditionStatus, reason string) {
	s.t.Helper()
	failed := metav1.ConditionTrue
	if succeeded == metav1.ConditionTrue {
		failed = metav1.ConditionFalse
	}
	for kind, want := range map[string]metav1.ConditionStatus{v1beta1.ConditionSucceeded: succeeded, v1beta1.ConditionFailed: failed} {
		c := meta.FindStatusCondition(r.Status.Conditions, kind)
		if c == nil || c.Status != want || c.Reason != reason || c.ObservedGeneration != r.Generation {
			s.t.Errorf("request %s: condition %s is %+v, want %s for %s at generation %d", r.Name, kind, c, want, reason, r.Generation)
		}
	}
	if r.Status.CompletionTime == nil {
		s.t.Errorf("request %s: no completionTime", r.Name)
	}
}

// follow watches a request from before it is made. What it returns waits for the end and gives every message its
// containers' states have had: some stand for a moment only.
func (s *fixture) follow(name string) func() []string {
	s.t.Helper()
	seen, err := s.Watch(s.t.Context(), &v1beta1.ContainerRecreateRequestList{}, client.InNamespace(s.namespace))
	s.check(err, "watch requests")
	s.t.Cleanup(seen.Stop)
	return func() []string {
		s.t.Helper()
		timeout := time.After(patience)
		var messages []string
		for {
			select {
			case <-timeout:
				s.t.Fatalf("request %s has not ended within %s; messages so far: %q", name, patience, messages)
			case event := <-seen.ResultChan():
				r, ok := event.Object.(*request)
				if !ok {
					s.t.Fatalf("watch ended: %+v", event)
				}
				if r.Name != name {
					continue
				}
				for _, state := range r.Status.ContainerRecreateStates {
					messages = append(messages, state.Message)
				}
				if r.Status.Phase == v1beta1.ContainerRecreateRequestCompleted {
					return messages
				}
			}
		}
	}
}

// said checks that one of the messages holds the words.
func (s *fixture) said(messages []string, words ...string) {
	s.t.Helper()
	if !slices.ContainsFunc(messages, func(m string) bool { return containsAll(m, words) }) {
		s.t.Errorf("messages %q, want one with %q", messages, words)
	}
}

// stateOf a container of a request.
func stateOf(r *request, container string) v1beta1.ContainerRecreateRequestRecreateState {
	for _, state := range r.Status.ContainerRecreateStates {
		if state.Name == container {
			return state
		}
	}
	return v1beta1.ContainerRecreateRequestRecreateState{}
}

func strategy(s v1beta1.ContainerRecreateRequestStrategy) func(*request) {
	return func(r *request) { r.Spec.Strategy = &s }
}

// force asks for a restart whatever has happened since the request was made.
func force() func(*request) {
	return strategy(v1beta1.ContainerRecreateRequestStrategy{ForceRecreate: true})
}

func annotate(key, value string) func(*request) {
	return func(r *request) { metav1.SetMetaDataAnnotation(&r.ObjectMeta, key, value) }
}

func label(key, value string) func(*request) {
	return func(r *request) { metav1.SetMetaDataLabel(&r.ObjectMeta, key, value) }
}

func deadline(seconds int64) func(*request) {
	return func(r *request) { r.Spec.ActiveDeadlineSeconds = &seconds }
}
