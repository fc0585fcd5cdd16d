package e2e_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
)

func TestSeveralRequestsOnOnePodRunInCreationOrder(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	before := s.start(s.podOf("web", shell("app", `trap 'sleep 1; exit 0' TERM; while :; do sleep 1000 & wait $!; done`)))
	list := &v1beta1.ContainerRecreateRequestList{}
	seen, err := s.Watch(t.Context(), list, client.InNamespace(s.namespace))
	s.check(err, "watch requests")
	defer seen.Stop()
	// Not the order of their names.
	names := []string{"e", "b", "d", "a", "c"}
	for _, name := range names {
		s.ask(name, "web/app", force())
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var began, completed []string
	for len(completed) < len(names) {
		select {
		case <-ctx.Done():
			t.Fatalf("completed within %s: %v of %v", patience, completed, names)
		case event := <-seen.ResultChan():
			r, ok := event.Object.(*request)
			if !ok {
				t.Fatalf("watch ended: %+v", event)
			}
			switch r.Status.Phase {
			case v1beta1.ContainerRecreateRequestRecreating:
				if !slices.Contains(began, r.Name) {
					began = append(began, r.Name)
				}
				if len(began) > len(completed)+1 {
					t.Errorf("%v have begun while only %v have completed", began, completed)
				}
			case v1beta1.ContainerRecreateRequestCompleted:
				if !slices.Contains(completed, r.Name) {
					completed = append(completed, r.Name)
				}
			}
		}
	}
	if diff := cmp.Diff(names, completed); diff != "" {
		t.Errorf("order of completion (-creation +got):\n%s", diff)
	}
	for _, name := range names {
		s.succeeded(name)
	}
	s.restarted(before, "app", int32(len(names)))
}

// TestRequestOfOldPodUIDNeverBlocks replaces a pod by another of the same name, as a StatefulSet does, while requests for
// the first are under way and waiting.
func TestRequestOfOldPodUIDNeverBlocks(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	build := func() *struct{ restarted func() } {
		pod := on(s.nodes[0], s.podOf("db-0", shell("app", stubborn)))
		s.start(pod)
		return &struct{ restarted func() }{func() { s.restarted(pod, "app", 1) }}
	}
	build()
	s.ask("old-1", "db-0/app")
	s.ask("old-2", "db-0/app", force())
	s.awaitRequest("old-1", "to be carried out", func(r *request) bool {
		return r.Status.Phase == v1beta1.ContainerRecreateRequestRecreating
	})
	s.remove(s.pod("db-0"))
	next := build()
	s.ask("new", "db-0/app", strategy(v1beta1.ContainerRecreateRequestStrategy{TerminationGracePeriodSeconds: new(int64(1))}))
	s.succeeded("new")
	next.restarted()
	s.failed("old-1", "PodGone")
	s.failed("old-2", "PodGone")
}

func TestContainersAreStoppedInSpecOrder(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		ordered bool
		want    string
	}{
		"one after another":                 {want: "b stops, a stops"},
		"each after the last one's restart": {ordered: true, want: "b stops, b starts, a stops"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newFixture(t)
			const slow = `trap 'sleep 1; echo $NAME stops >> /shared/order; exit 0' TERM
				echo $NAME starts >> /shared/order; while :; do sleep 1000 & wait $!; done`
			before := s.start(s.podOf("web", shell("b", "NAME=b;"+slow), shell("a", "NAME=a;"+slow), shell("look", obedient)))
			s.exec("web", "look", "rm /shared/order")
			s.ask("r", "web/b,a", strategy(v1beta1.ContainerRecreateRequestStrategy{OrderedRecreate: tc.ordered}))
			s.succeeded("r")
			s.restarted(before, "a", 1)
			s.restarted(before, "b", 1)
			s.untouched(before, "look")
			lines := strings.Split(strings.TrimSpace(s.exec("web", "look", "cat /shared/order")), "\n")
			if !tc.ordered { // when kubelet starts them is its own affair
				lines = slices.DeleteFunc(lines, func(line string) bool { return strings.HasSuffix(line, "starts") })
			}
			if got := strings.Join(lines, ", "); got != tc.want && got != tc.want+", a starts" {
				t.Errorf("order: %s; want %s", got, tc.want)
			}
		})
	}
}
