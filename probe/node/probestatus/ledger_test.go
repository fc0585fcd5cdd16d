package probestatus_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/probe/node/probestatus"
)

var noon = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// shown lists a status as pod, probe, state.
func shown(status v1alpha1.NodePodProbeStatus) []string {
	var list []string
	for _, pod := range status.PodProbeStatuses {
		for _, state := range pod.ProbeStates {
			list = append(list, pod.Namespace+"/"+pod.Name+" "+pod.UID+" "+state.Name+" "+string(state.State))
		}
	}
	return list
}

// Its order depends on nothing but its content, so that nothing is written again for its order.
func TestStatusIsInOrder(t *testing.T) {
	t.Parallel()
	l := probestatus.Ledger{}
	for _, uid := range []string{"2", "1"} {
		l.Of("shop", "b", types.UID(uid))["m#x"] = &probestatus.Record{State: v1alpha1.ProbeSucceeded}
	}
	l.Of("shop", "a", "9")["m#y"] = &probestatus.Record{State: v1alpha1.ProbeFailed}
	l.Of("shop", "a", "9")["m#x"] = &probestatus.Record{State: v1alpha1.ProbeUnknown}
	l.Of("bank", "z", "0")["m#x"] = &probestatus.Record{State: v1alpha1.ProbeSucceeded}
	l.Of("bank", "y", "5") // without a record
	want := []string{"bank/z 0 m#x Succeeded", "shop/a 9 m#x Unknown", "shop/a 9 m#y Failed", "shop/b 1 m#x Succeeded", "shop/b 2 m#x Succeeded"}
	if diff := cmp.Diff(want, shown(l.Status(noon))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if n := len(l.Status(noon).PodProbeStatuses); n != 4 {
		t.Errorf("%d pods, want those with results", n)
	}
	if l.Size() != 5 || len(l.Known("9")) != 2 || l.Known("absent") != nil || len(l) != 5 {
		t.Errorf("size %d, %d of a pod", l.Size(), len(l.Known("9")))
	}
}

func TestRecordsAreHiddenUntilTheirTime(t *testing.T) {
	t.Parallel()
	l := probestatus.Ledger{}
	for name, hidden := range map[string]time.Duration{"m#now": 0, "m#later": 2 * time.Second, "m#soon": time.Second} {
		l.Of("shop", "a", "1")[name] = &probestatus.Record{State: v1alpha1.ProbeUnknown, Hidden: noon.Add(hidden)}
	}
	for after, want := range map[time.Duration]struct {
		shown []string
		next  time.Time
	}{
		0:               {[]string{"m#now"}, noon.Add(time.Second)},
		time.Second:     {[]string{"m#now", "m#soon"}, noon.Add(2 * time.Second)},
		2 * time.Second: {[]string{"m#later", "m#now", "m#soon"}, time.Time{}},
	} {
		var names []string
		for _, state := range l.Status(noon.Add(after)).PodProbeStatuses[0].ProbeStates {
			names = append(names, state.Name)
		}
		if next := l.Hidden(noon.Add(after)); !slices.Equal(names, want.shown) || !next.Equal(want.next) {
			t.Errorf("after %s: %q, the next at %s", after, names, next)
		}
	}
}

// A record that is written and read again is the same, apart from fractions of a second.
func TestRecordIsReadBack(t *testing.T) {
	t.Parallel()
	l := probestatus.Ledger{}
	l.Of("shop", "a", "1")["m#x"] = &probestatus.Record{
		State: v1alpha1.ProbeFailed, Message: "busy", ProbedAt: noon.Add(time.Second + time.Millisecond), ChangedAt: noon.Add(time.Millisecond),
	}
	l.Of("shop", "a", "1")["m#y"] = &probestatus.Record{State: v1alpha1.ProbeUnknown}
	status := l.Status(noon)
	state, ok := probestatus.Published(status, "1", "m#x")
	got := probestatus.RecordOf("i-1", state)
	want := &probestatus.Record{Instance: "i-1", State: v1alpha1.ProbeFailed, Message: "busy", ProbedAt: noon.Add(time.Second), ChangedAt: noon}
	if diff := cmp.Diff(want, got); !ok || diff != "" {
		t.Errorf("%t (-want +got):\n%s", ok, diff)
	}
	if state, ok := probestatus.Published(status, "1", "m#y"); !ok || !state.LastProbeTime.IsZero() || !state.LastTransitionTime.IsZero() {
		t.Errorf("%t, %+v", ok, state)
	}
	for uid, name := range map[string]string{"2": "m#x", "1": "m#z"} {
		if state, ok := probestatus.Published(status, types.UID(uid), name); ok {
			t.Errorf("%s of %s: %+v", name, uid, state)
		}
	}
}

func TestOnlyTheTimeOfTheLastProbeMakesNoDifference(t *testing.T) {
	t.Parallel()
	status := func() v1alpha1.NodePodProbeStatus {
		return v1alpha1.NodePodProbeStatus{
			Conditions: []metav1.Condition{{Type: "Delayed", Status: "True"}},
			PodProbeStatuses: []v1alpha1.PodProbeStatus{{Namespace: "shop", Name: "a", UID: "1", ProbeStates: []v1alpha1.ContainerProbeState{
				{Name: "m#x", State: v1alpha1.ProbeFailed, Message: "busy", LastTransitionTime: metav1.NewTime(noon), LastProbeTime: metav1.NewTime(noon)},
			}}},
		}
	}
	of := func(change func(*v1alpha1.PodProbeStatus, *v1alpha1.ContainerProbeState)) v1alpha1.NodePodProbeStatus {
		s := status()
		change(&s.PodProbeStatuses[0], &s.PodProbeStatuses[0].ProbeStates[0])
		return s
	}
	type pod = v1alpha1.PodProbeStatus
	type state = v1alpha1.ContainerProbeState
	for name, tc := range map[string]struct {
		other v1alpha1.NodePodProbeStatus
		same  bool
	}{
		"nothing":                {status(), true},
		"time of the last probe": {of(func(_ *pod, s *state) { s.LastProbeTime = metav1.NewTime(noon.Add(time.Hour)) }), true},
		"fraction of a second":   {of(func(_ *pod, s *state) { s.LastTransitionTime = metav1.NewTime(noon.Add(time.Millisecond)) }), true},
		"time of the change":     {of(func(_ *pod, s *state) { s.LastTransitionTime = metav1.NewTime(noon.Add(time.Second)) }), false},
		"state":                  {of(func(_ *pod, s *state) { s.State = v1alpha1.ProbeSucceeded }), false},
		"message":                {of(func(_ *pod, s *state) { s.Message = "busier" }), false},
		"probe":                  {of(func(_ *pod, s *state) { s.Name = "m#y" }), false},
		"another probe":          {of(func(p *pod, s *state) { p.ProbeStates = append(p.ProbeStates, *s) }), false},
		"name of the pod":        {of(func(p *pod, _ *state) { p.Name = "b" }), false},
		"namespace of the pod":   {of(func(p *pod, _ *state) { p.Namespace = "bank" }), false},
		"UID of the pod":         {of(func(p *pod, _ *state) { p.UID = "2" }), false},
		"condition":              {func() v1alpha1.NodePodProbeStatus { s := status(); s.Conditions = nil; return s }(), false},
	} {
		if got := probestatus.Same(status(), tc.other); got != tc.same {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestMessagesAreCutUntilTheStatusFits(t *testing.T) {
	t.Parallel()
	l := probestatus.Ledger{}
	for _, name := range []string{"m#x", "m#y"} {
		l.Of("shop", "a", "1")[name] = &probestatus.Record{State: v1alpha1.ProbeFailed, Message: strings.Repeat("x", 1000)}
	}
	status, cut, err := probestatus.Fit(l.Status(noon), 1000)
	states := status.PodProbeStatuses[0].ProbeStates
	if err != nil || cut >= 500 || cut < 100 || len(states[0].Message) > cut || len(states[0].Message) != len(states[1].Message) {
		t.Errorf("cut to %d, %d and %d left, %v", cut, len(states[0].Message), len(states[1].Message), err)
	}
}

// A namespace with long messages does not shorten the messages of another one.
func TestLongMessagesOfANamespaceLeaveThoseOfAnother(t *testing.T) {
	t.Parallel()
	l := probestatus.Ledger{}
	for i := range 2900 {
		uid := types.UID(fmt.Sprint("loud-", i))
		l.Of("loud", string(uid), uid)["m#x"] = &probestatus.Record{State: v1alpha1.ProbeFailed, Message: strings.Repeat("<", 1024)}
	}
	const quiet = "players=40 of 64, draining in ten minutes"
	l.Of("quiet", "b", "b")["m#x"] = &probestatus.Record{State: v1alpha1.ProbeFailed, Message: quiet}
	const limit = 900 << 10
	status, cut, err := probestatus.Fit(l.Status(noon), limit)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(status)
	if err != nil || len(text) > limit || len(text) < limit/2 || cut >= len(quiet) || cut == 0 {
		t.Errorf("cut to %d, %d bytes, %v", cut, len(text), err)
	}
	if state, _ := probestatus.Published(status, "b", "m#x"); state.Message != quiet {
		t.Errorf("message of the other namespace: %q", state.Message)
	}
}

// The spec takes of the space of the object: a node with large probes that say much would never write a result.
func TestSpecAndStatusFitIntoOneObject(t *testing.T) {
	t.Parallel()
	const etcd = 1536 << 10 // --max-request-bytes
	for name, tc := range map[string]struct {
		spec     int // bytes of its only command
		at, most int
	}{
		"small spec":   {100, 900 << 10, 900 << 10},
		"largest spec": {767 << 10, 640 << 10, etcd - 767<<10 - 32<<10},
	} {
		spec := v1alpha1.NodePodProbeSpec{PodProbes: []v1alpha1.PodProbe{{Probes: make([]v1alpha1.ContainerProbe, 1)}}}
		spec.PodProbes[0].Probes[0].Probe.Exec = &corev1.ExecAction{Command: []string{strings.Repeat("x", tc.spec)}}
		limit, err := probestatus.Limit(spec)
		if err != nil || limit < tc.at || limit > tc.most {
			t.Errorf("%s: %d bytes are left for the status, %v", name, limit, err)
		}
	}
}
