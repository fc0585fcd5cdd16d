package crr_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/identity"
)

func TestPlanRestartsOneContainer(t *testing.T) {
	t.Parallel()
	s := newScene()

	first := s.plan()
	wantDiff(t, "stop", first.Stop, &crr.Stop{Container: "app", ID: id("app", 0), Grace: 30 * time.Second})
	wantDiff(t, "phase", string(first.Status.Phase), "Recreating")
	wantDiff(t, "recorded before the stop", first.Status.ContainerRecreateStates[0].ContainerID, id("app", 0).String())

	s.stored(first, time.Second).exited("app", 0, 143)
	s.observed.Acts["app"] = crr.Act{Done: s.now}
	wantWait(t, s.plan())

	s.runs("app", 1)
	wantWait(t, s.plan())

	s.ready("app", 1)
	wantOutcome(t, s.plan(), crr.ReasonSucceeded)
	wantDiff(t, "message of a success, which OpenKruise clients read as failure", s.plan().Status.Message, "")
}

func TestPlanNeverStopsTwice(t *testing.T) {
	t.Parallel()
	tests := map[string]*scene{
		"the stop is under way": newScene().begun(t).with(func(s *scene) {
			s.observed.Acts["app"] = crr.Act{Running: true}
		}),
		"the new instance runs":                              newScene().begun(t).runs("app", 1),
		"the new instance runs, and force was asked":         forced(newScene()).begun(t).runs("app", 1),
		"force: restarted twice since":                       forced(newScene().runs("app", 1)).begun(t).runs("app", 2),
		"it was restarted by an image update before we came": newScene().runs("app", 1),
		"it is down": newScene().exited("app", 0, 1),
	}
	for name, s := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if stop := s.plan().Stop; stop != nil {
				t.Errorf("planned to stop %v", stop.ID)
			}
		})
	}
}

// A daemon killed between the record and the stop, or during the stop, stops the same instance and no other.
func TestPlanResumesAfterKill(t *testing.T) {
	t.Parallel()
	s := forced(newScene().runs("app", 1)).begun(t)
	s.observed.Acts = nil
	wantDiff(t, "stop", s.plan().Stop.ID, id("app", 1))
}

func forced(s *scene) *scene {
	s.request.Spec.Strategy.ForceRecreate = true
	return s
}

// An image update or a crash restarted the container between admission and our coming: it counts, or, with
// forceRecreate, what runs now is stopped.
func TestPlanAlreadyRecreated(t *testing.T) {
	t.Parallel()
	s := newScene().runs("app", 1).ready("app", 1)
	wantOutcome(t, s.plan(), crr.ReasonSucceeded)
	wantDiff(t, "forced stop", forced(s).plan().Stop.ID, id("app", 1))
}

func TestPlanJudgesByIdentityNotByClock(t *testing.T) {
	t.Parallel()
	for name, skew := range map[string]time.Duration{"an hour behind": -time.Hour, "a day ahead": 24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene().begun(t)
			s.now = s.now.Add(skew)
			s.observed.ClockOffset = -skew
			s.runs("app", 1).ready("app", 1)
			s.observed.Instances["app"][0].StartedAt = noon.Add(skew).Add(-time.Hour)
			wantOutcome(t, s.plan(), crr.ReasonSucceeded)
		})
	}
}

func TestPlanWaitsForTheRightReadiness(t *testing.T) {
	t.Parallel()
	s := newScene().begun(t).runs("app", 1) // the pod's status still shows the old instance, ready
	wantWait(t, s.plan())
	s.containerStatus(corev1.ContainerStatus{Name: "app", ContainerID: id("app", 1).String(), Ready: false})
	wantWait(t, s.plan())
	s.ready("app", 1)
	wantOutcome(t, s.plan(), crr.ReasonSucceeded)
}

func TestPlanMinStartedSeconds(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.request.Spec.Strategy.MinStartedSeconds = 10
	s.begun(t).runs("app", 1).ready("app", 1)
	s.observed.Instances["app"][0].StartedAt = s.now.Add(-4 * time.Second)
	wait := s.plan()
	wantWait(t, wait)
	wantDiff(t, "again", wait.Again.Sub(s.now), 6*time.Second)

	s.exited("app", 1, 1) // it flaps
	wantWait(t, s.plan())

	s.runs("app", 2).ready("app", 2)
	wantOutcome(t, s.plan(), crr.ReasonSucceeded)
}

func TestPlanCompletedIsNeverRevived(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.request.Status.Phase = v1beta1.ContainerRecreateRequestCompleted
	s.request.Status.Message = "ended by the manager"
	got := s.plan()
	wantDiff(t, "status", got.Status, s.request.Status)
	if got.Stop != nil {
		t.Error("stops for a completed request")
	}
	// Completed by a manager, then overwritten by a daemon of another make: the time of completion still ends it.
	s.request.Status.Phase = v1beta1.ContainerRecreateRequestRecreating
	s.request.Status.CompletionTime = &metav1.Time{Time: noon}
	if s.plan().Stop != nil {
		t.Error("stops for a request with a completion time")
	}
}

func TestPlanDeadlineMarksContainersFailed(t *testing.T) {
	t.Parallel()
	deadline := int64(5)
	s := newScene("app", "log")
	s.request.Spec.ActiveDeadlineSeconds = &deadline
	first := s.plan()
	wantDiff(t, "again at the deadline", first.Again.Sub(noon), 5*time.Second)

	s.stored(first, 5*time.Second)
	ended := s.plan()
	wantOutcome(t, ended, crr.ReasonDeadlineExceeded)
	wantDiff(t, "phases", phases(ended.Status), map[string]string{"app": "Failed", "log": "Failed"})

	s.observed.ClockOffset = -2 * time.Second // our clock runs ahead of the API server's
	if s.plan().Status.Phase == v1beta1.ContainerRecreateRequestCompleted {
		t.Error("a clock that runs ahead cut the deadline short")
	}
}

func TestPlanPodGone(t *testing.T) {
	t.Parallel()
	tests := map[string]func(*scene){
		"no pod of that UID": func(s *scene) { s.observed.Pod = nil },
		"being deleted":      func(s *scene) { s.observed.Pod.DeletionTimestamp = &metav1.Time{Time: noon} },
		"ended":              func(s *scene) { s.observed.Pod.Status.Phase = corev1.PodSucceeded },
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantOutcome(t, newScene().with(change).plan(), crr.ReasonPodGone)
		})
	}
}

func TestPlanStopsOneAfterAnotherInSpecOrder(t *testing.T) {
	t.Parallel()
	s := newScene("log", "app")
	wantDiff(t, "first", s.plan().Stop.Container, "log")
	s.begun(t)
	s.observed.Acts["log"] = crr.Act{Running: true}
	wantWait(t, s.plan())

	s.exited("log", 0, 0)
	s.observed.Acts["log"] = crr.Act{Done: s.now}
	wantDiff(t, "second, without waiting for the restart of the first", s.plan().Stop.Container, "app")
}

func TestPlanOrderedWaitsForTheRestart(t *testing.T) {
	t.Parallel()
	s := newScene("log", "app")
	s.request.Spec.Strategy.OrderedRecreate = true
	s.begun(t).exited("log", 0, 0)
	wantWait(t, s.plan())
	s.runs("log", 1)
	wantWait(t, s.plan())
	s.ready("log", 1)
	wantDiff(t, "second", s.plan().Stop.Container, "app")
}

func TestPlanStopFailures(t *testing.T) {
	t.Parallel()
	failing := func(act crr.Act) *scene {
		s := newScene("app", "log").begun(t)
		act.Err = "stop container app: runtime says no"
		act.Done = s.now
		s.observed.Acts["app"] = act
		return s
	}
	t.Run("tried again after a moment", func(t *testing.T) {
		t.Parallel()
		s := failing(crr.Act{Failures: 3})
		again := s.plan()
		wantWait(t, again)
		wantDiff(t, "delay", again.Again.Sub(s.now), 4*time.Second)
		s.now = again.Again
		wantDiff(t, "stop", s.plan().Stop.ID, id("app", 0))
	})
	t.Run("an unreachable runtime is no verdict", func(t *testing.T) {
		t.Parallel()
		wantWait(t, failing(crr.Act{Failures: 50, Transient: true}).plan())
	})
	t.Run("failurePolicy Fail ends the request and says why", func(t *testing.T) {
		t.Parallel()
		ended := failing(crr.Act{Failures: 5}).plan()
		wantOutcome(t, ended, crr.ReasonStopFailed)
		if !strings.Contains(ended.Status.Message, "runtime says no") {
			t.Errorf("message %q does not say why", ended.Status.Message)
		}
	})
	t.Run("failurePolicy Ignore goes on with the others", func(t *testing.T) {
		t.Parallel()
		s := failing(crr.Act{Failures: 5})
		s.request.Spec.Strategy.FailurePolicy = v1beta1.FailurePolicyIgnore
		next := s.plan()
		wantDiff(t, "stop", next.Stop.Container, "log")
		s.stored(next, time.Second).runs("log", 1).ready("log", 1)
		ended := s.plan()
		wantOutcome(t, ended, crr.ReasonContainerFailed)
		wantDiff(t, "phases", phases(ended.Status), map[string]string{"app": "Failed", "log": "Succeeded"})
	})
}

func TestPlanUnreadyGracePeriod(t *testing.T) {
	t.Parallel()
	grace := int64(20)
	drained := func(gate bool) *scene {
		s := newScene()
		s.request.Spec.Strategy.UnreadyGracePeriodSeconds = &grace
		if gate {
			s.observed.Pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "KruisePodReady"}}
		}
		return s
	}
	acquired := func(s *scene) {
		s.request.Status.Conditions = append(s.request.Status.Conditions, metav1.Condition{
			Type: v1beta1.ConditionPreRecreateGrace, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(noon),
		})
	}
	t.Run("waits for the manager, then for the grace", func(t *testing.T) {
		t.Parallel()
		s := drained(true)
		first := s.plan()
		wantWait(t, first)
		wantDiff(t, "phase, which tells the manager to drain", string(first.Status.Phase), "Recreating")
		s.stored(first, 5*time.Second).with(acquired)
		wait := s.plan()
		wantWait(t, wait)
		wantDiff(t, "rest", wait.Again.Sub(s.now), 15*time.Second)
		s.now = wait.Again
		wantDiff(t, "stop", s.plan().Stop.ID, id("app", 0))
	})
	t.Run("a clock that is wrong by hours cannot stretch it", func(t *testing.T) {
		t.Parallel()
		s := drained(true).with(acquired)
		s.now = noon.Add(-3 * time.Hour)
		wantDiff(t, "rest", s.plan().Again.Sub(s.now), 20*time.Second)
	})
	t.Run("without the readiness gate there is nothing to wait for", func(t *testing.T) {
		t.Parallel()
		wantDiff(t, "stop", drained(false).plan().Stop.ID, id("app", 0))
	})
	t.Run("a manager that is away stops nothing undrained", func(t *testing.T) {
		t.Parallel()
		s := drained(true)
		s.stored(s.plan(), time.Minute)
		wantOutcome(t, s.plan(), crr.ReasonDrainNotAcquired)
	})
}

// The hook that is executed is the pod's. What a request says of it may come from anybody who may create one.
func TestPlanPreStopOfThePod(t *testing.T) {
	t.Parallel()
	hook := func(s *scene, handler *corev1.LifecycleHandler) *scene {
		s.observed.Pod.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{PreStop: handler}
		return s
	}
	drain := &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"drain"}}}
	forged := &v1beta1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"cat", "/secret"}}}

	s := hook(newScene(), drain)
	wantDiff(t, "a request without a hook", s.plan().Stop.PreStop, drain)
	s.request.Spec.Containers[0].PreStop = forged
	wantDiff(t, "a request with another hook", s.plan().Stop.PreStop, drain)

	s = newScene()
	s.request.Spec.Containers[0].PreStop = forged
	wantDiff(t, "a pod without a hook", s.plan().Stop.PreStop, (*corev1.LifecycleHandler)(nil))

	s = hook(newScene(), drain)
	s.request.Spec.Strategy.TerminationGracePeriodSeconds = new(int64(0))
	wantDiff(t, "grace 0 means now", s.plan().Stop, &crr.Stop{Container: "app", ID: id("app", 0)})

	s = newScene("mesh")
	s.observed.Pod.Spec.InitContainers = []corev1.Container{{Name: "mesh", Lifecycle: &corev1.Lifecycle{PreStop: drain}}}
	s.runs("mesh", 0)
	wantDiff(t, "a native sidecar", s.plan().Stop.PreStop, drain)
}

func TestPlanPreStopTCPSocket(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.observed.Pod.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{TCPSocket: &corev1.TCPSocketAction{}}}
	ended := s.plan()
	wantOutcome(t, ended, crr.ReasonInvalidRequest)
	if !strings.Contains(ended.Status.Message, "tcpSocket") {
		t.Errorf("message %q does not name tcpSocket", ended.Status.Message)
	}
	s.request.Spec.Strategy.TerminationGracePeriodSeconds = new(int64(0))
	wantDiff(t, "without grace no hook is run", s.plan().Stop, &crr.Stop{Container: "app", ID: id("app", 0)})
}

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
			s := newScene()
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
			s := newScene()
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

func TestPlanPodEndedByTheStop(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.observed.Pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	s.begun(t).missing("app")
	s.observed.Pod.Status.Phase = corev1.PodFailed
	wantOutcome(t, s.plan(), crr.ReasonRestartPolicyForbidsRestart)
}

func TestPlanBypassedAdmission(t *testing.T) {
	t.Parallel()
	tests := map[string]func(*scene){
		"no containers":      func(s *scene) { s.request.Spec.Containers = nil },
		"no status context":  func(s *scene) { s.request.Spec.Containers[0].StatusContext = nil },
		"malformed ID":       func(s *scene) { s.request.Spec.Containers[0].StatusContext.ContainerID = "../../etc" },
		"of another runtime": func(s *scene) { s.request.Spec.Containers[0].StatusContext.ContainerID = "docker://app0" },
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantOutcome(t, newScene().with(change).plan(), crr.ReasonInvalidRequest)
		})
	}
}

func (s *scene) waiting(reason string) {
	s.containerStatus(corev1.ContainerStatus{Name: "app", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}})
}

// A status that only tells of progress is not worth a write when kubelet is quick.
func TestPlanSavesTheProgressWrite(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change func(*scene)
		want   time.Duration // after the stop
	}{
		"kubelet does not say why it waits": {func(*scene) {}, 10 * time.Second},
		"kubelet is at it":                  {func(s *scene) { s.waiting("ContainerCreating") }, 10 * time.Second},
		"after a first word":                {func(s *scene) { s.request.Status.ContainerRecreateStates[0].IsKilled = true }, 30 * time.Second},
		"kubelet cannot":                    {func(s *scene) { s.waiting("CreateContainerConfigError") }, 2 * time.Second},
		"kubelet will back off":             {func(s *scene) { s.options.RespectBackoff = true; s.exited("app", 1, 1) }, 2 * time.Second},
		"kubelet backs off":                 {func(s *scene) { s.options.RespectBackoff = true; s.crashLoop("app", 0) }, 2 * time.Second},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene().begun(t).exited("app", 0, 143).with(tt.change)
			s.observed.Acts["app"] = crr.Act{Done: s.now}
			soon := s.plan()
			wantDiff(t, "status soon after the stop", soon.Status, s.request.Status)
			wantDiff(t, "again", soon.Again.Sub(s.now), tt.want)
			s.now = soon.Again
			if late := s.plan(); late.Status.ContainerRecreateStates[0] == s.request.Status.ContainerRecreateStates[0] {
				t.Errorf("progress is never told: %+v", late.Status)
			}
		})
	}
}

// A runtime that is down is no reason to think the containers gone; deadlines hold all the same.
func TestPlanWhileTheRuntimeIsDown(t *testing.T) {
	t.Parallel()
	deadline := int64(60)
	s := newScene().begun(t).missing("app")
	s.request.Spec.ActiveDeadlineSeconds = &deadline
	s.observed.Unseen = "the container runtime does not answer"
	got := s.plan()
	wantWait(t, got)
	wantDiff(t, "message", got.Status.Message, s.observed.Unseen)
	s.now = noon.Add(time.Minute)
	wantOutcome(t, s.plan(), crr.ReasonDeadlineExceeded)
}

// A request that waits for another of its pod has a deadline all the same.
func TestWaitEndsAtTheDeadline(t *testing.T) {
	t.Parallel()
	deadline := int64(5)
	s := newScene("app", "log")
	s.request.Spec.ActiveDeadlineSeconds = &deadline
	first := &crr.Request{ObjectMeta: metav1.ObjectMeta{Name: "first"}}
	wait := crr.Wait(s.request, first, s.options, 0, noon)
	wantDiff(t, "phase", string(wait.Status.Phase), "Pending")
	wantDiff(t, "again", wait.Again.Sub(noon), 5*time.Second)
	ended := crr.Wait(s.request, first, s.options, 0, noon.Add(5*time.Second))
	wantOutcome(t, ended, crr.ReasonDeadlineExceeded)
	wantDiff(t, "phases", phases(ended.Status), map[string]string{"app": "Failed", "log": "Failed"})
}
