package crr_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/internal/identity"
)

// kubelet was quicker than the removal: it reported the end, and under such a policy never reports the next instance.
func TestPlanRestartThatKubeletWillNeverReport(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		policy   corev1.RestartPolicy
		exitCode int32
		want     string
	}{
		"Never":               {corev1.RestartPolicyNever, 143, crr.ReasonRestartNotReported},
		"OnFailure, exit 0":   {corev1.RestartPolicyOnFailure, 0, crr.ReasonRestartNotReported},
		"OnFailure, exit 143": {corev1.RestartPolicyOnFailure, 143, ""},
		"Always":              {corev1.RestartPolicyAlways, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newFixture()
			s.observed.Pod.Spec.RestartPolicy = tt.policy
			s.request.Annotations = map[string]string{v1beta1.AnnotationRestartPolicy: v1beta1.RestartPolicyOverride}
			s.begun(t).runs("app", 1)
			s.observed.Pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: tt.exitCode}}
			if tt.want == "" {
				wantWait(t, s.plan())
				return
			}
			wantOutcome(t, s.plan(), tt.want)
		})
	}
}

func TestPlanRestartPolicyForbidsRestart(t *testing.T) {
	t.Parallel()
	never, onFailure := corev1.RestartPolicyNever, corev1.RestartPolicyOnFailure
	always := corev1.ContainerRestartPolicyAlways
	tests := map[string]struct {
		policy    corev1.RestartPolicy
		container *corev1.ContainerRestartPolicy
		exitCode  int32
		override  bool
		want      string // "", "start", or the reason it fails for
	}{
		"Never":                                {policy: never, exitCode: 143, want: crr.ReasonRestartPolicyForbidsRestart},
		"OnFailure, exit 0":                    {policy: onFailure, exitCode: 0, want: crr.ReasonRestartPolicyForbidsRestart},
		"OnFailure, exit 143":                  {policy: onFailure, exitCode: 143},
		"Never, overridden":                    {policy: never, exitCode: 143, override: true, want: "start"},
		"OnFailure, exit 0, overridden":        {policy: onFailure, exitCode: 0, override: true, want: "start"},
		"Never, but the container says Always": {policy: never, container: &always, exitCode: 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newFixture()
			s.observed.Pod.Spec.RestartPolicy = tt.policy
			s.observed.Pod.Spec.Containers[0].RestartPolicy = tt.container
			if tt.override {
				s.request.Annotations = map[string]string{v1beta1.AnnotationRestartPolicy: v1beta1.RestartPolicyOverride}
			}
			wantDiff(t, "removed after the stop", len(s.plan().Stop.Remove) > 0, tt.override)
			got := s.begun(t).exited("app", 0, tt.exitCode).plan()
			switch tt.want {
			case "":
				wantWait(t, got)
			case "start":
				wantDiff(t, "start", got.Start, &crr.Start{Container: "app", Remove: []identity.ContainerID{id("app", 0)}})
			default:
				wantOutcome(t, got, tt.want)
			}
		})
	}
}

// A job that is run once more, for example: it was restarted, and has done its work again.
func TestPlanNewContainerEndsAndIsNotStartedAgain(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		policy   corev1.RestartPolicy
		exitCode int32
		phase    corev1.PodPhase
		want     string
	}{
		"OnFailure, exit 0":              {corev1.RestartPolicyOnFailure, 0, corev1.PodRunning, "EndedAfterRestart"},
		"OnFailure, exit 1":              {corev1.RestartPolicyOnFailure, 1, corev1.PodRunning, ""},
		"Never":                          {corev1.RestartPolicyNever, 1, corev1.PodRunning, "EndedAfterRestart"},
		"OnFailure, exit 0 ends the pod": {corev1.RestartPolicyOnFailure, 0, corev1.PodSucceeded, "EndedAfterRestart"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newFixture()
			s.observed.Pod.Spec.RestartPolicy = tt.policy
			s.request.Annotations = map[string]string{v1beta1.AnnotationRestartPolicy: v1beta1.RestartPolicyOverride}
			s.begun(t).exited("app", 1, tt.exitCode)
			s.observed.Pod.Status.Phase = tt.phase
			if tt.want == "" {
				wantWait(t, s.plan())
				return
			}
			wantOutcome(t, s.plan(), tt.want)
		})
	}
}

func TestPlanPodEndedByTheStop(t *testing.T) {
	t.Parallel()
	s := newFixture()
	s.observed.Pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	s.begun(t).missing("app")
	s.observed.Pod.Status.Phase = corev1.PodFailed
	wantOutcome(t, s.plan(), crr.ReasonRestartPolicyForbidsRestart)
}

func TestPlanBypassedAdmission(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change func(*fixture)
		says   string
	}{
		"no containers":      {func(s *fixture) { s.request.Spec.Containers = nil }, "spec.containers is empty"},
		"no status context":  {func(s *fixture) { s.request.Spec.Containers[0].StatusContext = nil }, "no statusContext or empty containerID in app container"},
		"malformed ID":       {func(s *fixture) { s.request.Spec.Containers[0].StatusContext.ContainerID = "../../etc" }, "../../etc"},
		"of another runtime": {func(s *fixture) { s.request.Spec.Containers[0].StatusContext.ContainerID = "docker://app0" }, "runs on docker, this node's daemon is connected to containerd"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := newFixture().with(tt.change).plan()
			wantOutcome(t, got, crr.ReasonInvalidRequest)
			if !strings.Contains(got.Status.Message, tt.says) {
				t.Errorf("message %q, want %q", got.Status.Message, tt.says)
			}
		})
	}
}

func (s *fixture) waiting(reason string) {
	s.containerStatus(corev1.ContainerStatus{Name: "app", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}})
}

// A status that only shows progress is not worth a write if kubelet is quick.
func TestPlanSavesTheProgressWrite(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change func(*fixture)
		want   time.Duration // after the stop
	}{
		"kubelet does not say why it waits": {func(*fixture) {}, 10 * time.Second},
		"kubelet is at it":                  {func(s *fixture) { s.waiting("ContainerCreating") }, 10 * time.Second},
		"kubelet gives no reason":           {func(s *fixture) { s.waiting("") }, 10 * time.Second},
		"kubelet reports no container":      {func(s *fixture) { s.observed.Pod.Status.ContainerStatuses = nil }, 10 * time.Second},
		"after a first word":                {func(s *fixture) { s.request.Status.ContainerRecreateStates[0].IsKilled = true }, 30 * time.Second},
		"kubelet cannot":                    {func(s *fixture) { s.waiting("CreateContainerConfigError") }, 2 * time.Second},
		"kubelet will back off":             {func(s *fixture) { s.options.RespectBackoff = true; s.exited("app", 1, 1) }, 2 * time.Second},
		"kubelet backs off":                 {func(s *fixture) { s.options.RespectBackoff = true; s.crashLoop("app", 0) }, 2 * time.Second},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newFixture().begun(t).exited("app", 0, 143).with(tt.change)
			s.observed.Actions["app"] = crr.ActionState{Done: s.now}
			soon := s.plan()
			wantDiff(t, "status soon after the stop", soon.Status, s.request.Status)
			wantDiff(t, "again", soon.Again.Sub(s.now), tt.want)
			s.now = soon.Again.Time
			if late := s.plan(); late.Status.ContainerRecreateStates[0] == s.request.Status.ContainerRecreateStates[0] {
				t.Errorf("progress is never told: %+v", late.Status)
			}
		})
	}
}

// A runtime that does not respond does not mean that the containers are gone; deadlines apply nevertheless.
func TestPlanWhileTheRuntimeIsDown(t *testing.T) {
	t.Parallel()
	deadline := int64(60)
	s := newFixture().begun(t).missing("app")
	s.request.Spec.ActiveDeadlineSeconds = &deadline
	s.observed.Unseen = "the container runtime does not answer"
	got := s.plan()
	wantWait(t, got)
	wantDiff(t, "message", got.Status.Message, s.observed.Unseen)
	wantDiff(t, "looked at again at the deadline", got.Again.Time, noon.Add(time.Minute))
	s.now = noon.Add(time.Minute)
	wantOutcome(t, s.plan(), crr.ReasonDeadlineExceeded)
}

// A request that waits for another request of its pod has a deadline too.
func TestWaitEndsAtTheDeadline(t *testing.T) {
	t.Parallel()
	deadline := int64(5)
	s := newFixture("app", "log")
	s.request.Spec.ActiveDeadlineSeconds = &deadline
	first := &crr.Request{ObjectMeta: metav1.ObjectMeta{Name: "first"}}
	wait := crr.Wait(s.request, first, s.options, 0, noon)
	wantDiff(t, "phase", string(wait.Status.Phase), "Pending")
	wantDiff(t, "again", wait.Again.Sub(noon), 5*time.Second)
	ended := crr.Wait(s.request, first, s.options, 0, noon.Add(5*time.Second))
	wantOutcome(t, ended, crr.ReasonDeadlineExceeded)
	wantDiff(t, "phases", phases(ended.Status), map[string]string{"app": "Failed", "log": "Failed"})
}
