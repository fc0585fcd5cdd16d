package gate_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/inplace/gate"
)

const (
	shared = v1beta1.ReadinessGateKruisePodReady
	own    = v1beta1.ReadinessGateInPlaceUpdateReady
)

var (
	now     = time.Date(2026, 11, 25, 10, 0, 0, 0, time.UTC)
	hourAgo = metav1.NewTime(now.Add(-time.Hour))
	restart = v1beta1.ReadinessHold{UserAgent: "ContainerRecreateRequest", Key: "shop/again"}
	update  = v1beta1.HoldOfInPlaceUpdate
)

// with is a pod with the gates, and with conditions that have been as they are for an hour.
func with(gates []corev1.PodConditionType, conditions ...corev1.PodCondition) *corev1.Pod {
	pod := &corev1.Pod{}
	for _, kind := range gates {
		pod.Spec.ReadinessGates = append(pod.Spec.ReadinessGates, corev1.PodReadinessGate{ConditionType: kind})
	}
	for _, condition := range conditions {
		if condition.LastTransitionTime.IsZero() {
			condition.LastTransitionTime = hourAgo
		}
		pod.Status.Conditions = append(pod.Status.Conditions, condition)
	}
	return pod
}

func gates(kinds ...corev1.PodConditionType) []corev1.PodConditionType { return kinds }

func ownIs(status corev1.ConditionStatus) corev1.PodCondition {
	return corev1.PodCondition{Type: own, Status: status}
}

func sharedIs(status corev1.ConditionStatus, holds ...v1beta1.ReadinessHold) corev1.PodCondition {
	return corev1.PodCondition{Type: shared, Status: status, Message: v1beta1.WriteReadinessHolds(holds)}
}

var unreadable = corev1.PodCondition{Type: shared, Status: corev1.ConditionFalse, Message: "{"}

func TestOnlyAnUpdateThatKeepsThePodOutOfItsServicesIsNamed(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		pod          *corev1.Pod
		of           corev1.PodConditionType // the gate that an update uses
		closed, shut bool
	}{
		"no gate":                                        {pod: with(nil), of: ""},
		"no gate, and a condition":                       {pod: with(nil, ownIs("False")), of: ""},
		"not open yet":                                   {pod: with(gates(own)), of: own, shut: true},
		"open":                                           {pod: with(gates(own), ownIs("True")), of: own},
		"closed":                                         {pod: with(gates(own), ownIs("False")), of: own, closed: true, shut: true},
		"KruisePodReady not open yet":                    {pod: with(gates(shared)), of: shared, shut: true},
		"KruisePodReady open":                            {pod: with(gates(shared), sharedIs("True")), of: shared},
		"KruisePodReady closed by an update":             {pod: with(gates(shared), sharedIs("False", restart, update)), of: shared, closed: true, shut: true},
		"KruisePodReady closed by a restart":             {pod: with(gates(shared), sharedIs("False", restart)), of: shared},
		"KruisePodReady is unreadable":                   {pod: with(gates(shared), unreadable), of: shared},
		"both open":                                      {pod: with(gates(own, shared), ownIs("True"), sharedIs("True")), of: shared},
		"both, and the update of OpenKruise closed":      {pod: with(gates(own, shared), ownIs("False"), sharedIs("True")), of: own, closed: true, shut: true},
		"both, and one is not open yet":                  {pod: with(gates(own, shared), sharedIs("True")), of: shared, shut: true},
		"KruisePodReady, and a condition without a gate": {pod: with(gates(shared), ownIs("False"), sharedIs("True")), of: shared},
	} {
		if of, closed, shut := gate.Of(tt.pod), gate.Closed(tt.pod) != nil, gate.Shut(tt.pod); of != tt.of || closed != tt.closed || shut != tt.shut {
			t.Errorf("%s: gate %q, closed %t, shut %t", name, of, closed, shut)
		}
		if says := gate.Message(tt.pod); (says != "") != tt.closed {
			t.Errorf("%s: says %q", name, says)
		}
	}
}

// Restarts and updates take a pod out of its Services by the same condition, and neither puts it back for the other.
func TestThePodStaysOutForAsLongAsOthersHoldIt(t *testing.T) {
	t.Parallel()
	opened := func(condition corev1.PodCondition, since metav1.Time) corev1.PodCondition {
		condition.LastTransitionTime = since
		return condition
	}
	var atTheWrite metav1.Time
	for name, tt := range map[string]struct {
		pod  *corev1.Pod
		open []corev1.PodCondition
	}{
		"no gate":             {pod: with(nil)},
		"one of its own":      {pod: with(gates(own), ownIs("False")), open: []corev1.PodCondition{ownIs("True")}},
		"the update alone":    {pod: with(gates(shared), sharedIs("False", update)), open: []corev1.PodCondition{opened(sharedIs("True"), atTheWrite)}},
		"a restart too":       {pod: with(gates(shared), sharedIs("False", restart, update)), open: []corev1.PodCondition{opened(sharedIs("False", restart), hourAgo)}},
		"a restart has ended": {pod: with(gates(shared), sharedIs("True", restart)), open: []corev1.PodCondition{opened(sharedIs("True", restart), atTheWrite)}},
		"no condition":        {pod: with(gates(shared)), open: []corev1.PodCondition{opened(sharedIs("True"), atTheWrite)}},
		"unreadable":          {pod: with(gates(own, shared), unreadable), open: []corev1.PodCondition{ownIs("True")}},
	} {
		if diff := cmp.Diff(tt.open, gate.Open(tt.pod)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestAnUpdateJoinsTheOthersThatHoldThePod(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		pod  *corev1.Pod
		want corev1.PodCondition
	}{
		"a gate of its own":  {with(gates(own)), corev1.PodCondition{Type: own, Status: "False", Reason: v1beta1.ReasonStartInPlaceUpdate}},
		"nobody holds it":    {with(gates(shared), sharedIs("True")), sharedIs("False", update)},
		"a restart holds it": {with(gates(shared), sharedIs("False", restart)), sharedIs("False", restart, update)},
		"it holds it itself": {with(gates(shared), sharedIs("False", restart, update)), sharedIs("False", restart, update)},
	} {
		got, err := gate.Close(tt.pod)
		if err != nil || got.Type != tt.want.Type || got.Status != tt.want.Status || got.Message != tt.want.Message {
			t.Errorf("%s: %v, %+v", name, err, got)
		}
	}
	if _, err := gate.Close(with(gates(shared), unreadable)); err == nil {
		t.Error("what others hold is overwritten")
	}
}

func TestAPodThatItsCommandHasLeftIsPutBack(t *testing.T) {
	t.Parallel()
	ready := corev1.PodCondition{Type: corev1.ContainersReady, Status: corev1.ConditionTrue}
	closed := func(ago time.Duration, change func(*corev1.Pod)) *corev1.Pod {
		pod := with(gates(own), corev1.PodCondition{Type: own, Status: "False", LastTransitionTime: metav1.NewTime(now.Add(-ago))}, ready)
		change(pod)
		return pod
	}
	nothing := func(*corev1.Pod) {}
	drains := func(record string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			pod.Annotations = map[string]string{v1beta1.AnnotationInPlaceUpdateState: record}
		}
	}
	owned := func(version string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: version, Controller: new(true)}}
		}
	}
	for name, tt := range map[string]struct {
		pod   *corev1.Pod
		back  bool
		again time.Duration // 0 for never
	}{
		"after a minute":                        {pod: closed(time.Minute, nothing), back: true},
		"not before":                            {pod: closed(59*time.Second, nothing), again: time.Second},
		"a minute after its drain":              {pod: closed(90*time.Second, drains(`{"refit":{"drainSeconds":30}}`)), back: true},
		"not before that":                       {pod: closed(89*time.Second, drains(`{"refit":{"drainSeconds":30}}`)), again: time.Second},
		"with a record that nobody can read":    {pod: closed(time.Minute, drains(`{`)), back: true},
		"in the hands of others":                {pod: with(gates(shared), sharedIs("False", restart), ready)},
		"being deleted":                         {pod: closed(time.Hour, func(pod *corev1.Pod) { pod.DeletionTimestamp = &hourAgo })},
		"of OpenKruise":                         {pod: closed(time.Hour, owned("apps.kruise.io/v1alpha1"))},
		"of Kubernetes":                         {pod: closed(time.Hour, owned("apps/v1")), back: true},
		"a container is not ready":              {pod: closed(time.Hour, func(pod *corev1.Pod) { pod.Status.Conditions[1].Status = "False" }), again: time.Minute},
		"kubelet does not say that it is ready": {pod: closed(time.Hour, func(pod *corev1.Pod) { pod.Status.Conditions = pod.Status.Conditions[:1] }), again: time.Minute},
	} {
		status, again := gate.TakeBack(tt.pod, now)
		if (status != nil) != tt.back || !again.IsZero() != (tt.again != 0) || tt.again != 0 && !again.Equal(now.Add(tt.again)) {
			t.Errorf("%s: put back %t, again at %s", name, status != nil, again)
		}
		if tt.back {
			want := []corev1.PodCondition{{Type: own, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(now)}, tt.pod.Status.Conditions[1]}
			if diff := cmp.Diff(want, status.Conditions); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
	}
}

// The time says since when a condition is as it is, not when it was written.
func TestAGateThatWasOpenKeepsItsTime(t *testing.T) {
	t.Parallel()
	pod := with(gates(own, shared), ownIs("True"), sharedIs("False", update), corev1.PodCondition{Type: corev1.ContainersReady, Status: corev1.ConditionTrue})
	status, _ := gate.TakeBack(pod, now)
	if status == nil || !status.Conditions[0].LastTransitionTime.Equal(&hourAgo) || !status.Conditions[1].LastTransitionTime.Time.Equal(now) {
		t.Errorf("%+v", status)
	}
}

func TestAGateThatNobodyHasOpenedIsOpened(t *testing.T) {
	t.Parallel()
	change := func(pod *corev1.Pod, change func(*corev1.Pod)) *corev1.Pod {
		change(pod)
		return pod
	}
	for name, tt := range map[string]struct {
		pod  *corev1.Pod
		open bool
	}{
		"no condition yet":   {with(gates(own)), true},
		"open":               {with(gates(own), ownIs("True")), false},
		"closed":             {with(gates(own), ownIs("False")), false},
		"no gate":            {with(nil), false},
		"the gate of others": {with(gates(shared)), false},
		"of a ReplicaSet": {change(with(gates(own)), func(pod *corev1.Pod) {
			pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Controller: new(true)}}
		}), true},
		"of a CloneSet": {change(with(gates(own)), func(pod *corev1.Pod) {
			pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps.kruise.io/v1alpha1", Controller: new(true)}}
		}), false},
		"being deleted": {change(with(gates(own)), func(pod *corev1.Pod) { pod.DeletionTimestamp = &hourAgo }), false},
	} {
		status, open := gate.Begin(tt.pod, now)
		if open != tt.open {
			t.Errorf("%s: %t", name, open)
		}
		if want := []corev1.PodCondition{{Type: own, Status: "True", LastTransitionTime: metav1.NewTime(now)}}; tt.open && !cmp.Equal(want, status.Conditions) {
			t.Errorf("%s: %+v", name, status.Conditions)
		}
	}
}
