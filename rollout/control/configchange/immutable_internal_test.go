package configchange

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/test/kit/recorder"
)

// again deletes an object and creates another one of its name.
func (a *apiServer) again(object client.Object) {
	a.t.Helper()
	if err := errors.Join(a.Delete(a.t.Context(), object), a.Create(a.t.Context(), object)); err != nil {
		a.t.Fatal(err)
	}
}

func immutable(value string) *corev1.ConfigMap {
	object := configMap(value)
	object.Immutable = new(true)
	return object
}

// Kubelet does not watch an immutable object that it has read: it gives restarted containers the earlier content.
func TestAnImmutableObjectThatIsReplacedRestartsNothingAndIsAnEvent(t *testing.T) {
	t.Parallel()
	locked := func(value string) *corev1.Secret {
		object := secret(value)
		object.Immutable = new(true)
		return object
	}
	for name, tt := range map[string]struct{ before, after client.Object }{
		"by an immutable one": {immutable("1"), immutable("2")},
		"by a mutable one":    {immutable("1"), configMap("2")},
		"Secret":              {locked("x"), locked("y")},
	} {
		a := newAPIServer(t, deployment(), tt.before, podOf("web-abc", "web-abc-1"))
		a.reconciler.Secrets = true
		a.settle()
		a.again(tt.after)
		a.settle()
		if rollouts := a.rollouts(); len(rollouts) > 0 || len(a.refreshed) > 0 {
			t.Errorf("%s: %d rollouts, annotated pods %v", name, len(rollouts), a.refreshed)
		}
		said := a.trigger().Status.Conditions[0]
		if said.Reason != v1alpha1.ReasonImmutableReplaced || !strings.Contains(said.Message, "kubectl rollout restart deployment/web --namespace=shop") {
			t.Errorf("%s: %+v", name, said)
		}
		a.settle()
		recorder.Want(t, a.events, "Warning ImmutableReplaced "+said.Message)
	}
}

// Kubelet watches an object until it has read that it is immutable.
func TestAnObjectThatBecomesImmutableWithItsChangeIsOneThatHasChanged(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(a *apiServer){
		"changed": func(a *apiServer) {
			edit(a, configMap(""), func(o *corev1.ConfigMap) { o.Data["a"], o.Immutable = "2", new(true) })
		},
		"created again": func(a *apiServer) { a.again(immutable("2")) },
	} {
		a := newAPIServer(t, deployment(), configMap("1"))
		a.settle()
		change(a)
		if a.settle(); len(a.rollouts()) != 1 {
			t.Errorf("%s: %d rollouts", name, len(a.rollouts()))
		}
		a.again(immutable("3"))
		a.settle()
		if said := a.trigger().Status.Conditions[0]; said.Reason != v1alpha1.ReasonImmutableReplaced || len(a.rollouts()) != 1 {
			t.Errorf("%s, and replaced: %d rollouts, %+v", name, len(a.rollouts()), said)
		}
	}
}

// It is not there for a moment in which the workload is looked at.
func TestAnImmutableObjectIsKnownWhileItIsDeleted(t *testing.T) {
	t.Parallel()
	a := newAPIServer(t, deployment(), immutable("1"))
	a.settle()
	if err := a.Delete(t.Context(), configMap("")); err != nil {
		t.Fatal(err)
	}
	a.settle()
	if err := a.Create(t.Context(), immutable("2")); err != nil {
		t.Fatal(err)
	}
	if a.settle(); len(a.rollouts()) > 0 {
		t.Errorf("%d rollouts", len(a.rollouts()))
	}
	recorder.Want(t, a.events, "Warning ImmutableReplaced ")
}
