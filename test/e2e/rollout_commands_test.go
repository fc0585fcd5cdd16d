package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	refitv1alpha1 "github.com/refit-project/refit/api/refit/v1alpha1"
)

func TestSeveralWorkloadsAreRestartedByOneCommand(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	s.deployment("web", 2)
	s.deployment("api", 1)
	out := s.command(0, []string{"RestartRollout"}, "restart", "deployment", "web", "api", "-c", "app,log", followed, "-o", "custom-columns=TARGET:.spec.targetRef.name,PODS:.status.restartedPods")
	for _, line := range []string{"web      2", "api      1"} {
		if !strings.Contains(out, line) {
			t.Errorf("no %q in:\n%s", line, out)
		}
	}
	manifest := filepath.Join(t.TempDir(), "app.yaml")
	text := "{apiVersion: v1, kind: ConfigMap, metadata: {name: x}}\n---\n{apiVersion: apps/v1, kind: Deployment, metadata: {name: api}}\n"
	s.check(os.WriteFile(manifest, []byte(text), 0o600), "write manifest")
	s.command(0, []string{"1 of 1 pod"}, "restart", "-f", manifest, "-c", "app", followed)
	s.run("label", "deployment", "web", "api", "tier=front")
	s.command(0, []string{"deployment/web"}, "restart", "deployment", "-l", "tier=front", "-c", "app", followed)
	s.command(1, []string{"nothing has been restarted"}, "restart", "deployment/web", "deployment/gone", "-c", "app")
	if got := len(s.rollouts(t.Context())); got != 5 {
		t.Errorf("%d RestartRollouts, want 5", got)
	}
}

func TestARestartIsPausedAndAbortedByCommands(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	s.deployment("web", 3)
	s.command(0, []string{"RestartRollout/web-"}, "restart", "deployment/web", "-c", "app", "--partition=2", "--wait=false", "-o", "jsonpath={.kind}/{.metadata.name}")
	name := s.rollouts(t.Context())[0].Name
	s.awaitRollout("leaves two pods", func(o *refitv1alpha1.RestartRollout) bool {
		return o.Status.RestartedPods == 1 && o.Status.RestartingPods == 0
	})
	s.command(0, []string{"paused"}, "rollout", "pause", "rr/"+name)
	s.command(124, []string{"1 of 3 pods restarted"}, "rollout", "status", "restartrollout/"+name, "--timeout=15s")
	s.command(0, []string{"1 of 3 pods restarted"}, "rollout", "status", "restartrollout", name, "--watch=false")
	s.command(0, []string{"resumed"}, "rollout", "resume", "rr/"+name)
	s.command(0, []string{"aborted"}, "rollout", "abort", "rr/"+name)
	s.command(1, []string{refitv1alpha1.ReasonDeadlineExceeded}, "rollout", "status", "rr/"+name, followed)
	s.command(2, []string{"has ended"}, "rollout", "abort", "rr/"+name)
	if got := s.rollouts(t.Context())[0].Status.RestartedPods; got != 1 {
		t.Errorf("%d pods restarted, want 1", got)
	}
}

func TestAScheduleIsListedAndTriggered(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	s.deployment("web", 1)
	schedule := &refitv1alpha1.RestartSchedule{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "yearly"}}
	schedule.Spec.Schedule = "0 3 1 1 *"
	schedule.Spec.RolloutTemplate.Spec.TargetRef = &refitv1alpha1.WorkloadReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}
	schedule.Spec.RolloutTemplate.Spec.Containers = refitv1alpha1.RolloutContainers("app")
	s.check(s.Create(t.Context(), schedule), "make RestartSchedule")
	s.command(0, []string{"deployment/web"}, "schedule", "ls")
	s.command(0, []string{"1 of 1 pod"}, "schedule", "trigger", "yearly", followed)
	s.command(0, []string{"suspended"}, "schedule", "suspend", "yearly")
	s.command(0, []string{"Suspended"}, "schedule", "ls")
	s.command(0, []string{"resumed"}, "schedule", "resume", "yearly")
}

func TestAnArchiveForAReportIsWritten(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	s.deployment("web", 1)
	s.command(0, []string{"restarted"}, "restart", "deployment/web", "-c", "app", followed)
	file := filepath.Join(t.TempDir(), "refit.tar.gz")
	s.command(0, []string{"is written"}, "doctor", "--bundle", file)
	listed, err := exec.CommandContext(t.Context(), "tar", "-tzf", file).Output()
	s.check(err, "list the archive")
	for _, name := range []string{"refit/doctor.txt", "refit/objects/restartrollouts.yaml", "refit/objects/events.yaml", "refit/logs/refit-manager-", "refit/logs/refit-daemon-"} {
		if !strings.Contains(string(listed), name) {
			t.Errorf("no %s in:\n%s", name, listed)
		}
	}
	s.command(2, []string{"file exists"}, "doctor", "--bundle", file)
}
