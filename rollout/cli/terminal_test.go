package cli_test

import (
	"context"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/internal/console"
	rolloutcli "github.com/refit-project/refit/rollout/cli"
	"github.com/refit-project/refit/test/kit/screen"
)

var digits = regexp.MustCompile(`[0-9]+\.[0-9]+`)

// TestTableOnATerminal restarts two pods of a Deployment, one of which fails, in a pseudo-terminal, and compares what is on the
// screen at the end.
func TestTableOnATerminal(t *testing.T) {
	t.Parallel()
	terminal := screen.Open(t, 200, 40)
	runRollout(t, console.NewOutput(terminal.File, true))
	shown := terminal.Close()
	// Whether the beginning is seen, and the displayed duration of a step, depend on when the watch delivers it.
	got := digits.ReplaceAllString(strings.Join(shown.Lines(), "\n"), "N")
	got = regexp.MustCompile(`\[ *Ns\]`).ReplaceAllString(got, "[Ns]")
	got = regexp.MustCompile(`(?m)^\[Ns\] \[[#-]+\].*\n`).ReplaceAllString(got, "")
	got = regexp.MustCompile(`(?m)^(POD        CONTAINER  OLD           NEW) .* (STATE)$`).ReplaceAllString(got, "$1 ... $2")
	got = regexp.MustCompile(`(?m)^(web-abc-[12]  app        old           new) .* (restarted|failed: StopFailed)$`).ReplaceAllString(got, "$1 ... $2")
	const want = `[Ns] RestartRollout web-x: restart container app of 2 pods of deployment/web
[Ns] pod web-abc-2: StopFailed: runtime is gone
POD        CONTAINER  OLD           NEW ... STATE
web-abc-1  app        old           new ... restarted
web-abc-2  app        old           new ... failed: StopFailed
[##########----------] 1 of 2 pods restarted, 0 under way, 1 failed`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("on the screen (-want +got):\n%s", diff)
	}
}

// Where there is no terminal each change is a line, without colours.
func TestLinesWithoutATerminal(t *testing.T) {
	t.Parallel()
	from, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	read := make(chan string, 1)
	go func() {
		text, _ := io.ReadAll(from)
		read <- string(text)
	}()
	runRollout(t, console.NewOutput(to, false))
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
	text := <-read
	for _, words := range []string{"pod web-abc-1, container app: restarted", "(containerd://old -> containerd://new)", "pod web-abc-2, container app: failed: StopFailed"} {
		if !strings.Contains(text, words) {
			t.Errorf("no %q in:\n%s", words, text)
		}
	}
	if strings.Contains(text, "\x1b") {
		t.Errorf("escape sequences in:\n%q", text)
	}
}

// runRollout restarts two pods: web-abc-1 with, web-abc-2 without success.
func runRollout(t *testing.T, output *console.Output) {
	t.Helper()
	f := newFixture(t)
	f.config.Output = output
	f.config.Timeout = 20 * time.Second
	var rollout *v1alpha1.RestartRollout
	began := make(chan struct{})
	f.finish = func(object client.Object) {
		if o, ok := object.(*v1alpha1.RestartRollout); ok {
			o.Status = v1alpha1.RestartRolloutStatus{ObservedGeneration: 1, RolloutPods: v1alpha1.RolloutPods{MatchedPods: 2}, RestartingPods: 2}
			rollout = o.DeepCopy()
			close(began)
		}
	}
	done := make(chan error, 1)
	target, err := rolloutcli.ParseTarget("deployment/web", "")
	if err != nil {
		t.Fatal(err)
	}
	go func() { done <- rolloutcli.Run(t.Context(), f.config, target) }()
	<-began
	carryOut(t, f, rollout)
	if err := <-done; console.ExitCode(err) != console.ExitFailed {
		t.Errorf("%v", err)
	}
}

// carryOut makes the requests of a rollout as the manager does, ends them as daemons do, and then the rollout.
func carryOut(t *testing.T, f *fixture, rollout *v1alpha1.RestartRollout) {
	t.Helper()
	ctx := t.Context()
	for _, pod := range []string{"web-abc-1", "web-abc-2"} {
		request := &v1beta1.ContainerRecreateRequest{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", GenerateName: "r-" + pod, Labels: map[string]string{v1alpha1.LabelRestartRollout: string(rollout.UID)}}}
		request.Spec.PodName = pod
		request.Spec.Containers = []v1beta1.ContainerRecreateRequestContainer{{Name: "app", StatusContext: &v1beta1.ContainerRecreateRequestContainerContext{ContainerID: "containerd://old"}}}
		request.Status.ContainerRecreateStates = []v1beta1.ContainerRecreateRequestRecreateState{{Name: "app", Phase: v1beta1.ContainerRecreateRequestRecreating, ContainerID: "containerd://old"}}
		outcome := crr.Outcome{}
		if pod == "web-abc-2" {
			outcome = crr.Outcome{Reason: crr.ReasonStopFailed, Message: "runtime is gone"}
		}
		crr.Complete(&request.Status, outcome, 1, time.Now())
		if err := f.config.API.Create(ctx, request); err != nil {
			t.Fatal(err)
		}
	}
	await(ctx, t, f, rollout)
}

// await ends the rollout when its object is stored.
func await(ctx context.Context, t *testing.T, f *fixture, rollout *v1alpha1.RestartRollout) {
	t.Helper()
	var stored v1alpha1.RestartRollout
	for f.config.API.Get(ctx, client.ObjectKeyFromObject(rollout), &stored) != nil || stored.Status.ObservedGeneration == 0 {
		if ctx.Err() != nil {
			t.Fatal("the rollout is not stored")
		}
	}
	stored.Status = v1alpha1.RestartRolloutStatus{ObservedGeneration: 1, RolloutPods: v1alpha1.RolloutPods{MatchedPods: 2, FailedPods: 1}, RestartedPods: 1}
	stored.Status.Failures = []v1alpha1.PodFailure{{Pod: "web-abc-2", Reason: crr.ReasonStopFailed, Message: "runtime is gone"}}
	if err := f.config.API.Update(ctx, &stored); err != nil {
		t.Fatal(err)
	}
	stored.Status.CompletionTime = new(metav1.Now())
	for _, kind := range []string{v1alpha1.ConditionProgressing, v1alpha1.ConditionSucceeded} {
		meta.SetStatusCondition(&stored.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: "PodsFailed", Message: "1 of 2 pods failed"})
	}
	if err := f.config.API.Update(ctx, &stored); err != nil {
		t.Fatal(err)
	}
}
