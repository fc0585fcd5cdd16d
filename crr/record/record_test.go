package record_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/crr/record"
)

// states of the containers app and log, with these container IDs.
func states(ids ...string) crr.Status {
	var status crr.Status
	for i, id := range ids {
		status.ContainerRecreateStates = append(status.ContainerRecreateStates,
			v1beta1.ContainerRecreateRequestRecreateState{Name: []string{"app", "log"}[i], ContainerID: id})
	}
	return status
}

func TestInstancesThatTheCRDDropsAreRecorded(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		annotation      string
		stored, written crr.Status
		want            string // of the annotation; empty: none is needed
	}{
		"the CRD has the field":             {stored: states("c://1", "c://2"), written: states("c://1", "c://2")},
		"nothing is to be recorded":         {stored: states("", ""), written: states("", "")},
		"the CRD has no such field":         {stored: states("", ""), written: states("c://1", ""), want: `{"app":"c://1"}`},
		"recorded":                          {annotation: `{"app":"c://1"}`, stored: states("", ""), written: states("c://1", "")},
		"the second container":              {annotation: `{"app":"c://1"}`, stored: states("", ""), written: states("c://1", "c://2"), want: `{"app":"c://1","log":"c://2"}`},
		"another instance than recorded":    {annotation: `{"app":"c://1"}`, stored: states(""), written: states("c://2"), want: `{"app":"c://2"}`},
		"the annotation is malformed":       {annotation: `nonsense`, stored: states(""), written: states("c://1"), want: `{"app":"c://1"}`},
		"the annotation is of another type": {annotation: `["c://1"]`, stored: states(""), written: states("c://1"), want: `{"app":"c://1"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			request := &crr.Request{Status: tt.stored}
			if tt.annotation != "" {
				request.Annotations = map[string]string{v1beta1.AnnotationInstances: tt.annotation}
			}
			for range 2 { // also after the IDs have been put back
				got, missing := record.Missing(request, tt.written)
				if got != tt.want || missing != (tt.want != "") {
					t.Errorf("record %q, %v; want %q", got, missing, tt.want)
				}
				request = record.Apply(request)
			}
		})
	}
}

// A container on which work has begun has its instance at admission, unless another one is recorded; one that waits for
// its turn or has ended is left as it is.
func TestBegunContainersAreThoseAtAdmission(t *testing.T) {
	t.Parallel()
	const pending, recreating = v1beta1.ContainerRecreateRequestPending, v1beta1.ContainerRecreateRequestRecreating
	for name, tt := range map[string]struct {
		phase                     v1beta1.ContainerRecreateRequestPhase
		message, stored, recorded string
		noContext                 bool
		want                      string
	}{
		"waits for its turn":       {phase: pending},
		"is being stopped":         {phase: pending, message: "stopping", want: "c://1"},
		"has been stopped":         {phase: recreating, want: "c://1"},
		"stored":                   {phase: recreating, stored: "c://2", want: "c://2"},
		"recorded by a daemon":     {phase: recreating, recorded: `{"app":"c://3"}`, want: "c://3"},
		"failed before it began":   {phase: v1beta1.ContainerRecreateRequestFailed, message: "not possible"},
		"succeeded":                {phase: v1beta1.ContainerRecreateRequestSucceeded},
		"no instance at admission": {phase: recreating, noContext: true},
	} {
		request := &crr.Request{Status: states(tt.stored)}
		state := &request.Status.ContainerRecreateStates[0]
		state.Phase, state.Message = tt.phase, tt.message
		if tt.recorded != "" {
			request.Annotations = map[string]string{v1beta1.AnnotationInstances: tt.recorded}
		}
		request.Spec.Containers = []v1beta1.ContainerRecreateRequestContainer{
			{Name: "log", StatusContext: &v1beta1.ContainerRecreateRequestContainerContext{ContainerID: "c://9"}},
			{Name: "app", StatusContext: &v1beta1.ContainerRecreateRequestContainerContext{ContainerID: "c://1"}},
		}
		if tt.noContext {
			request.Spec.Containers[1].StatusContext = nil
		}
		before := request.DeepCopy()
		if got := record.Begun(request).Status.ContainerRecreateStates[0].ContainerID; got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
		if diff := cmp.Diff(before, request); diff != "" {
			t.Errorf("%s: the argument was changed (-before +after):\n%s", name, diff)
		}
	}
}

// What the annotation has is read as if the API server had stored it; what the API server has stored counts first.
func TestRecordedInstancesAreReadAsStored(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		annotation string
		stored     []string
		want       []string
	}{
		"no annotation":                 {stored: []string{"", "c://2"}, want: []string{"", "c://2"}},
		"dropped by the CRD":            {annotation: `{"app":"c://1","log":"c://2"}`, stored: []string{"", ""}, want: []string{"c://1", "c://2"}},
		"the second is not recorded":    {annotation: `{"app":"c://1"}`, stored: []string{"", ""}, want: []string{"c://1", ""}},
		"stored and recorded":           {annotation: `{"app":"c://9"}`, stored: []string{"c://1", ""}, want: []string{"c://1", ""}},
		"of a container that is not in": {annotation: `{"db":"c://9"}`, stored: []string{""}, want: []string{""}},
		"malformed":                     {annotation: `{"app":`, stored: []string{""}, want: []string{""}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			request := &crr.Request{Status: states(tt.stored...)}
			if tt.annotation != "" {
				request.Annotations = map[string]string{v1beta1.AnnotationInstances: tt.annotation}
			}
			if got := record.Pruned(request); got != (tt.annotation != "") {
				t.Errorf("the CRD is taken for one that drops container IDs: %t", got)
			}
			before := request.DeepCopy()
			if diff := cmp.Diff(states(tt.want...), record.Apply(request).Status); diff != "" {
				t.Errorf("states (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, request); diff != "" {
				t.Errorf("the argument was changed (-before +after):\n%s", diff)
			}
		})
	}
}

// A stop that the container runtime has refused has taken nothing from the grace period: its beginning must not stay recorded.
func TestBeginningOfAStopThatDidNotBeginIsTakenOutOfTheRecord(t *testing.T) {
	t.Parallel()
	request := &crr.Request{Status: states("")}
	began := states("c://1")
	began.ContainerRecreateStates[0].StopBegan = new(metav1.NewMicroTime(time.Unix(1e9, 0)))
	text, missing := record.Missing(request, began)
	if !missing {
		t.Fatal("nothing is recorded")
	}
	request.Annotations = map[string]string{v1beta1.AnnotationInstances: text}
	local := began.DeepCopy()
	local.ContainerRecreateStates[0].StopBegan.Time = time.Unix(1e9, 0).In(time.FixedZone("", 3600))
	if again, _ := record.Missing(&crr.Request{Status: states("")}, *local); again != text {
		t.Errorf("%s where clocks are an hour ahead, want %s", again, text)
	}
	if text, missing := record.Missing(request, began); missing {
		t.Errorf("recorded again: %s", text)
	}
	if diff := cmp.Diff(began, record.Apply(request).Status); diff != "" {
		t.Errorf("read again (-want +got):\n%s", diff)
	}
	if text, missing = record.Missing(request, states("c://1")); text != `{"app":"c://1"}` || !missing {
		t.Errorf("%q, %t", text, missing)
	}
}

// A kruise-daemon records no instance: it stops the one at admission. A refit-daemon stops none that it has not recorded.
func TestOrderedIsTheInstanceAtAdmissionOnlyOfAKruiseDaemon(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		stored   string
		pruned   bool
		accepted bool
		want     string
	}{
		"a kruise-daemon":                     {want: "c://1"},
		"a refit-daemon, and nothing ordered": {accepted: true},
		"an OpenKruise CRD":                   {pruned: true},
		"stored":                              {stored: "c://2", want: "c://2"},
		"stored, and accepted":                {stored: "c://2", accepted: true, want: "c://2"},
	} {
		request := &crr.Request{Status: states(tt.stored)}
		request.Spec.Containers = []v1beta1.ContainerRecreateRequestContainer{{Name: "app", StatusContext: &v1beta1.ContainerRecreateRequestContainerContext{ContainerID: "c://1"}}}
		if tt.pruned {
			request.Annotations = map[string]string{v1beta1.AnnotationInstances: "{}"}
		}
		if tt.accepted {
			request.Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionAccepted, Status: metav1.ConditionTrue}}
		}
		if got := record.Ordered(request, request.Status.ContainerRecreateStates[0]); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
	if got := record.AtAdmission(&crr.Request{}, "app"); got != "" {
		t.Errorf("%q of a container that is not in the request", got)
	}
}

// The instance that is recorded is not the one whose beginning was: each has a time of its own.
func TestTheBeginningOfAStopIsThatOfTheRecordedInstance(t *testing.T) {
	t.Parallel()
	const text = `{"app":"c://1","app/stopBegan":"2026-11-21T10:00:00.000000Z","log/stopBegan":"2026-11-21T11:00:00.000000Z"}`
	request := &crr.Request{Status: states("", "")}
	request.Annotations = map[string]string{v1beta1.AnnotationInstances: text}
	got := record.Apply(request).Status.ContainerRecreateStates
	if got[0].StopBegan == nil || !got[0].StopBegan.Equal(new(metav1.NewMicroTime(time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)))) || got[1].StopBegan != nil || got[1].ContainerID != "" {
		t.Errorf("%+v", got)
	}
	request.Status = states("c://2", "")
	if got := record.Apply(request).Status.ContainerRecreateStates; got[0].StopBegan != nil || got[0].ContainerID != "c://2" {
		t.Errorf("of another instance: %+v", got)
	}
}

// The API server keeps the ID of one instance, and the annotation has another from before: it has to be written again.
func TestARecordOfAnInstanceBeforeIsWrittenAgain(t *testing.T) {
	t.Parallel()
	request := &crr.Request{Status: states("c://2")}
	request.Annotations = map[string]string{v1beta1.AnnotationInstances: `{"app":"c://1"}`}
	if text, missing := record.Missing(request, states("c://2")); text != `{"app":"c://2"}` || !missing {
		t.Errorf("%q, %t", text, missing)
	}
}
