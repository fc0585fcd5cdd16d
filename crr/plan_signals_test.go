package crr_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
)

// signalled is a fixture in a pod without access to its runtime.
func signalled(policy corev1.RestartPolicy, grace int64, rules ...corev1.ContainerRestartRule) *fixture {
	s := newFixture()
	s.options.SignalsOnly = true
	s.observed.Pod.Spec.RestartPolicy = policy
	s.request.Spec.Strategy.TerminationGracePeriodSeconds = &grace
	if len(rules) > 0 {
		s.observed.Pod.Spec.Containers[0].RestartPolicy = new(corev1.ContainerRestartPolicy(policy))
		s.observed.Pod.Spec.Containers[0].RestartPolicyRules = rules
	}
	return s
}

// Without a runtime only kubelet can start a stopped container. So a stop only begins if kubelet restarts the container
// whatever its exit code.
func TestPlanBySignalsNeverEndsAContainerForGood(t *testing.T) {
	t.Parallel()
	rule := func(operator corev1.ContainerRestartRuleOnExitCodesOperator, codes ...int32) corev1.ContainerRestartRule {
		return corev1.ContainerRestartRule{
			Action:    corev1.ContainerRestartRuleActionRestart,
			ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{Operator: operator, Values: codes},
		}
	}
	const in, notIn = corev1.ContainerRestartRuleOnExitCodesOpIn, corev1.ContainerRestartRuleOnExitCodesOpNotIn
	for name, tt := range map[string]struct {
		fixture *fixture
		want    string // in the message; empty: stopped
	}{
		"Always":                              {signalled(corev1.RestartPolicyAlways, 30), ""},
		"OnFailure may exit well":             {signalled(corev1.RestartPolicyOnFailure, 30), "exit code 0; with terminationGracePeriodSeconds 0 it is killed"},
		"OnFailure, killed":                   {signalled(corev1.RestartPolicyOnFailure, 0), ""},
		"Never":                               {signalled(corev1.RestartPolicyNever, 30), "restartPolicy Never would not start it again"},
		"Never, killed":                       {signalled(corev1.RestartPolicyNever, 0), "exit code 137"},
		"Never, a rule for any exit":          {signalled(corev1.RestartPolicyNever, 30, rule(notIn)), ""},
		"Never, a rule for a signal alone":    {signalled(corev1.RestartPolicyNever, 30, rule(in, 137, 143)), "exit code 0; with terminationGracePeriodSeconds 0"},
		"Never, a rule for KILL, killed":      {signalled(corev1.RestartPolicyNever, 0, rule(in, 137)), ""},
		"Never, a rule for another exit code": {signalled(corev1.RestartPolicyNever, 0, rule(in, 42)), "exit code 137"},
		"Never, every exit code except 137":   {signalled(corev1.RestartPolicyNever, 30, rule(notIn, 137)), "exit code 137"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			decision := tt.fixture.plan()
			if tt.want == "" {
				if decision.Stop == nil {
					t.Errorf("not stopped: %s", decision.Status.Message)
				}
				return
			}
			wantOutcome(t, decision, crr.ReasonNotPossibleHere)
			if !strings.Contains(decision.Status.Message, tt.want) || decision.Stop != nil {
				t.Errorf("message %q, want %q", decision.Status.Message, tt.want)
			}
		})
	}
}

// Kubelet's back-off and restart policy can only be got round by removing instances.
func TestPlanBySignalsRemovesNothing(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]*fixture{
		"running":  newFixture().restarted("app", 3),
		"exited":   newFixture().exited("app", 3, 1).crashLoop("app", 3),
		"missing":  newFixture().missing("app"),
		"override": newFixture().exited("app", 0, 1),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s.options.SignalsOnly = true
			s.request.Annotations = map[string]string{
				v1beta1.AnnotationRestartBackoff: v1beta1.RestartBackoffSkip, v1beta1.AnnotationRestartPolicy: v1beta1.RestartPolicyOverride,
			}
			decision := s.plan()
			if decision.Start != nil || decision.Stop != nil && decision.Stop.Remove != nil {
				t.Errorf("stop %+v, start %+v", decision.Stop, decision.Start)
			}
		})
	}
}

// A container that cannot be stopped from here fails alone when the request ignores failures.
func TestPlanUnstoppable(t *testing.T) {
	t.Parallel()
	s := newFixture("app", "log")
	s.observed.Unstoppable = map[string]string{"app": "its processes cannot be seen"}
	failed := s.plan()
	wantOutcome(t, failed, crr.ReasonNotPossibleHere)
	wantDiff(t, "message", failed.Status.Message, "container app: its processes cannot be seen")

	s.request.Spec.Strategy.FailurePolicy = v1beta1.FailurePolicyIgnore
	wantDiff(t, "the other container is stopped", s.plan().Stop.Container, "log")

	s = newFixture()
	s.observed.Unstoppable = map[string]string{"app": "its processes cannot be seen"}
	s.observed.Actions["app"] = crr.ActionState{Running: true}
	if decision := s.plan(); crr.Completed(&crr.Request{Status: decision.Status}) {
		t.Errorf("failed while it is being stopped: %s", decision.Status.Message)
	}
}

// The manager ends requests of nodes without a daemon, unless a sidecar has taken them.
func TestASidecarClaimsItsRequests(t *testing.T) {
	t.Parallel()
	s := signalled(corev1.RestartPolicyAlways, 30)
	for want, decision := range map[metav1.ConditionStatus]crr.Decision{
		metav1.ConditionTrue: s.plan(), metav1.ConditionFalse: crr.Wait(s.request, s.request, s.options, 0, noon),
	} {
		accepted := meta.FindStatusCondition(decision.Status.Conditions, v1beta1.ConditionAccepted)
		if accepted == nil || accepted.Status != want || accepted.Reason != crr.ReasonCarriedOutBySidecar {
			t.Errorf("condition %+v, want %s", accepted, want)
		}
	}
	daemons := newFixture()
	if waits := crr.Wait(daemons.request, daemons.request, daemons.options, 0, noon); len(waits.Status.Conditions) > 0 {
		t.Errorf("a request that waits for a daemon: %+v", waits.Status.Conditions)
	}
}
