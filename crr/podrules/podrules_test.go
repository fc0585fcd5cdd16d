package podrules_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr/podrules"
	"github.com/refit-project/refit/internal/kubelet"
)

// A runtime that is given no grace period kills at once: the program would not get the chance to end that its pod promises it.
func TestStopThatIsTriedAgainAfterItsGracePeriodStillSendsTheStopSignal(t *testing.T) {
	t.Parallel()
	hook := &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 1}}
	now := time.Unix(1e9, 0)
	for name, tt := range map[string]struct {
		grace, since, want time.Duration
		hook, runsHook     bool
	}{
		"the first attempt":                      {grace: 30 * time.Second, want: 30 * time.Second},
		"a later one has the rest":               {grace: 30 * time.Second, since: 12 * time.Second, want: 18 * time.Second},
		"nothing is left":                        {grace: 30 * time.Second, since: time.Hour, want: time.Second},
		"less than a second is left":             {grace: 30 * time.Second, since: 29_700 * time.Millisecond, want: time.Second},
		"it began after now, by another clock":   {grace: 30 * time.Second, since: -time.Minute, want: 30 * time.Second},
		"none is wanted":                         {since: time.Hour, hook: true},
		"the hook has used up all of it":         {grace: 30 * time.Second, since: time.Hour, hook: true, want: kubelet.MinGracePeriod},
		"the hook may go on in what is left":     {grace: 30 * time.Second, since: 10 * time.Second, hook: true, want: 20 * time.Second, runsHook: true},
		"the grace period is less than a second": {grace: 300 * time.Millisecond, since: time.Hour, want: 300 * time.Millisecond},
	} {
		began := metav1.NewMicroTime(now.Add(-tt.since))
		var handler *corev1.LifecycleHandler
		if tt.hook {
			handler = hook
		}
		got, runs := podrules.Rest(tt.grace, handler, &began, now)
		if got != tt.want || (runs != nil) != tt.runsHook {
			t.Errorf("%s: %s, hook %v; want %s, hook %t", name, got, runs, tt.want, tt.runsHook)
		}
	}
}

// Only a drain that was asked for, and cannot be, is worth a word.
func TestDrainThatIsNotPossibleIsToldToWhoAskedForIt(t *testing.T) {
	t.Parallel()
	pod := func(gates ...corev1.PodConditionType) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
		for _, gate := range gates {
			p.Spec.ReadinessGates = append(p.Spec.ReadinessGates, corev1.PodReadinessGate{ConditionType: gate})
		}
		return p
	}
	strategy := func(drain *int64) *v1beta1.ContainerRecreateRequestStrategy {
		return &v1beta1.ContainerRecreateRequestStrategy{UnreadyGracePeriodSeconds: drain}
	}
	for name, tt := range map[string]struct {
		strategy *v1beta1.ContainerRecreateRequestStrategy
		pod      *corev1.Pod
		said     bool
	}{
		"no gate":         {strategy(new(int64(5))), pod(), true},
		"other gates":     {strategy(new(int64(5))), pod("example.org/Ready"), true},
		"the gate":        {strategy(new(int64(5))), pod("example.org/Ready", "KruisePodReady"), false},
		"0 s":             {strategy(new(int64(0))), pod(), false},
		"no drain":        {strategy(nil), pod(), false},
		"no strategy":     {nil, pod(), false},
		"no pod is known": {strategy(new(int64(5))), nil, false},
	} {
		request := &v1beta1.ContainerRecreateRequest{}
		request.Spec.Strategy = tt.strategy
		got := podrules.NotDrained(request, tt.pod)
		if (got != "") != tt.said || tt.said && !strings.Contains(got, "pod web has no readiness gate KruisePodReady") {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestAStopMayEndAContainerForGood(t *testing.T) {
	t.Parallel()
	const always, onFailure, never = corev1.ContainerRestartPolicyAlways, corev1.ContainerRestartPolicyOnFailure, corev1.ContainerRestartPolicyNever
	killedIsStarted := []corev1.ContainerRestartRule{{
		Action: corev1.ContainerRestartRuleActionRestart, ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{Operator: corev1.ContainerRestartRuleOnExitCodesOpIn, Values: []int32{137}},
	}}
	const kill = "; with terminationGracePeriodSeconds 0 it is killed, exits with code 137, and is started"
	for name, tt := range map[string]struct {
		policy kubelet.RestartPolicy
		grace  time.Duration
		want   string
	}{
		"always":                    {kubelet.RestartPolicy{Policy: always}, time.Second, ""},
		"on failure":                {kubelet.RestartPolicy{Policy: onFailure}, time.Second, "restartPolicy OnFailure would not start it again after exit code 0" + kill},
		"on failure, killed":        {kubelet.RestartPolicy{Policy: onFailure}, 0, ""},
		"never":                     {kubelet.RestartPolicy{Policy: never}, time.Second, "restartPolicy Never would not start it again after exit code 0"},
		"never, killed":             {kubelet.RestartPolicy{Policy: never}, 0, "restartPolicy Never would not start it again after exit code 137"},
		"never but after a kill":    {kubelet.RestartPolicy{Policy: never, Rules: killedIsStarted}, time.Second, "restartPolicy Never would not start it again after exit code 0" + kill},
		"always started if killed":  {kubelet.RestartPolicy{Policy: never, Rules: killedIsStarted}, 0, ""},
		"a kill does not wait long": {kubelet.RestartPolicy{Policy: onFailure}, time.Nanosecond, "restartPolicy OnFailure would not start it again after exit code 0" + kill},
	} {
		if got := podrules.EndsForGood(tt.policy, tt.grace); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

func TestTheHookIsThatOfTheContainer(t *testing.T) {
	t.Parallel()
	hook := func(seconds int64) *corev1.Lifecycle {
		return &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: seconds}}}
	}
	pod := &corev1.Pod{}
	pod.Spec.Containers = []corev1.Container{{Name: "plain"}, {Name: "app", Lifecycle: hook(1)}, {Name: "started", Lifecycle: &corev1.Lifecycle{PostStart: hook(9).PreStop}}}
	pod.Spec.InitContainers = []corev1.Container{{Name: "mesh", Lifecycle: hook(2)}}
	for name, want := range map[string]int64{"app": 1, "mesh": 2, "plain": 0, "started": 0, "absent": 0} {
		var got int64
		if handler := podrules.PreStop(pod, name, time.Second); handler != nil {
			got = handler.Sleep.Seconds
		}
		if got != want {
			t.Errorf("%s: sleeps %d s, want %d", name, got, want)
		}
	}
	if podrules.PreStop(pod, "app", 0) != nil {
		t.Error("a hook has no time to run")
	}
}

// Only a request that overrides the policy gets that far, and of a pod whose work is done nothing is left that could end.
func TestAStopNeedsAnotherContainerIfItWouldEndThePod(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		override   bool
		terminated corev1.ConditionStatus
		policy     corev1.RestartPolicy
		want       bool
	}{
		"an override":                        {override: true, policy: "Never", want: true},
		"none":                               {policy: "Never"},
		"it is started anyway":               {override: true, policy: "Always"},
		"only the sidecars are to be ended":  {override: true, terminated: corev1.ConditionTrue, policy: "Never"},
		"they are not to be ended":           {override: true, terminated: corev1.ConditionFalse, policy: "Never", want: true},
		"no override, and only the sidecars": {terminated: corev1.ConditionTrue, policy: "Never"},
	} {
		request, pod := &v1beta1.ContainerRecreateRequest{}, &corev1.Pod{}
		pod.Spec.RestartPolicy = tt.policy
		if tt.override {
			request.Annotations = map[string]string{v1beta1.AnnotationRestartPolicy: v1beta1.RestartPolicyOverride}
		}
		if tt.terminated != "" {
			pod.Status.Conditions = []corev1.PodCondition{{Type: v1beta1.ConditionSidecarTerminated, Status: tt.terminated}}
		}
		if got := podrules.NeedsOther(request, pod, "app"); got != tt.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestOthersAreTheContainersThatRunBesideIt(t *testing.T) {
	t.Parallel()
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	pod := &corev1.Pod{}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", State: running}, {Name: "log", State: running}, {Name: "ended"}, {Name: "db", State: running}}
	pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "mesh", State: running}}
	var names []string
	for _, other := range podrules.Others(pod, "app") {
		names = append(names, other.Name)
	}
	if diff := cmp.Diff([]string{"log", "db"}, names); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
