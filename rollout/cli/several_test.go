package cli_test

import (
	"bytes"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/internal/console"
	"github.com/refit-project/refit/internal/table"
	rolloutcli "github.com/refit-project/refit/rollout/cli"
)

func targetsOf(t *testing.T, names ...string) []rolloutcli.Target {
	t.Helper()
	var all []rolloutcli.Target
	for _, name := range names {
		target, err := rolloutcli.ParseTarget(name, "")
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, target)
	}
	return all
}

func TestSeveralTargetsAreRestartedOneAfterAnother(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var order []string
	f.finish = func(object client.Object) {
		switch object.(type) {
		case *v1beta1.ContainerRecreateRequest:
			var rollouts v1alpha1.RestartRolloutList
			if err := f.config.API.List(t.Context(), &rollouts); err != nil || len(rollouts.Items) != 1 || rollouts.Items[0].Status.CompletionTime == nil {
				t.Errorf("the pod is restarted before the end of the Deployment: %v", err)
			}
			order = append(order, "pod")
		case *v1alpha1.RestartRollout:
			order = append(order, "deployment")
		}
		end(crr.Outcome{})(object)
	}
	var printed bytes.Buffer
	f.config.Made = table.Made{Out: &printed, Format: "yaml"}
	if err := rolloutcli.Run(t.Context(), f.config, targetsOf(t, "deployment/web", "pod/other-abc-3")...); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(order, " "); got != "deployment pod" {
		t.Errorf("%s", got)
	}
	if first, second, ok := strings.Cut(printed.String(), "\n---\n"); !ok || !strings.Contains(first, "kind: RestartRollout") || !strings.Contains(second, "kind: ContainerRecreateRequest") {
		t.Errorf("%s", printed.String())
	}
}

// What is wrong with a later target is found before the first one is restarted.
func TestAllTargetsAreCheckedFirst(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.finish = func(client.Object) { t.Error("something is restarted") }
	err := rolloutcli.Run(t.Context(), f.config, targetsOf(t, "deployment/web", "pod/gone")...)
	if err == nil || !strings.Contains(err.Error(), "pod/gone: ") || !strings.Contains(err.Error(), "nothing has been restarted") {
		t.Errorf("%v", err)
	}
}

// A workload that is scaled to zero does not keep the others from being restarted.
func TestAWorkloadWithoutReplicasHasNothingToRestart(t *testing.T) {
	t.Parallel()
	for replicas, code := range map[int32]int{0: console.ExitDone, 3: console.ExitFailed} { // 3 should have pods
		f := newFixture(t)
		idle := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", GenerateName: "idle-"}} // the fixture names it idle-x
		idle.Spec.Replicas, idle.Spec.Selector = new(replicas), &metav1.LabelSelector{MatchLabels: map[string]string{"app": "idle"}}
		if err := f.config.API.Create(t.Context(), idle); err != nil {
			t.Fatal(err)
		}
		f.finish = end(crr.Outcome{})
		err := rolloutcli.Run(t.Context(), f.config, targetsOf(t, "deployment/idle-x", "deployment/web")...)
		said := strings.Contains(f.out.String(), "deployment/idle-x has no pods: nothing to restart")
		if console.ExitCode(err) != code || said != (replicas == 0) {
			t.Errorf("%d replicas: %v\n%s", replicas, err, f.out.String())
		}
		var rollouts v1alpha1.RestartRolloutList
		if err := f.config.API.List(t.Context(), &rollouts); err != nil || (len(rollouts.Items) == 1) != (replicas == 0) {
			t.Errorf("%d replicas: %v: %d RestartRollouts", replicas, err, len(rollouts.Items))
		}
	}
}

func TestAFailureNamesTheTargetsThatWereNotBegun(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.finish = end(crr.Outcome{Reason: crr.ReasonStopFailed, Message: "runtime is gone"})
	err := rolloutcli.Run(t.Context(), f.config, targetsOf(t, "pod/web-abc-1", "pod/web-abc-2", "deployment/web")...)
	if console.ExitCode(err) != console.ExitFailed || !strings.Contains(err.Error(), "not begun: pod/web-abc-2, deployment/web") {
		t.Errorf("%v", err)
	}
}

func TestAllBeginAtOnceWithoutAWait(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.config.Wait = false
	if err := rolloutcli.Run(t.Context(), f.config, targetsOf(t, "pod/web-abc-1", "pod/web-abc-2")...); err != nil {
		t.Fatal(err)
	}
	var requests v1beta1.ContainerRecreateRequestList
	if err := f.config.API.List(t.Context(), &requests); err != nil || len(requests.Items) != 2 {
		t.Errorf("%v: %d requests", err, len(requests.Items))
	}
}

func TestTargetOfAnObject(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string]string{
		"v1/Pod": "pod/x", "apps/v1/StatefulSet": "statefulset/x", "apps.kruise.io/v1beta1/CloneSet": "cloneset/x", "v1/Service": "", "batch/v1/Job": "",
	} {
		i := strings.LastIndexByte(kind, '/')
		target, ok := rolloutcli.TargetOf(schema.FromAPIVersionAndKind(kind[:i], kind[i+1:]), "shop", "x")
		if ok != (want != "") || ok && (target.String() != want || target.Namespace != "shop") {
			t.Errorf("%s: %v, %v", kind, target, ok)
		}
	}
}
