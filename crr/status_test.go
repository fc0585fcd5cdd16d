package crr_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
)

// Requests of kruise-daemon have no conditions: what became of them is in their message and states.
func TestOutcomeWithoutConditions(t *testing.T) {
	t.Parallel()
	const succeeded, failed = v1beta1.ContainerRecreateRequestSucceeded, v1beta1.ContainerRecreateRequestFailed
	for name, tt := range map[string]struct {
		message string
		states  []v1beta1.ContainerRecreateRequestRecreateState
		want    crr.Outcome
	}{
		"both succeeded": {"", []v1beta1.ContainerRecreateRequestRecreateState{{Name: "a", Phase: succeeded}, {Name: "b", Phase: succeeded}}, crr.Outcome{}},
		"one failed": {
			"", []v1beta1.ContainerRecreateRequestRecreateState{{Name: "a", Phase: succeeded}, {Name: "b", Phase: failed, Message: "no such image"}},
			crr.Outcome{Reason: crr.ReasonContainerFailed, Message: "container b was not recreated: no such image"},
		},
		"one is not named": {
			"", []v1beta1.ContainerRecreateRequestRecreateState{{Name: "a", Phase: succeeded}},
			crr.Outcome{Reason: crr.ReasonContainerFailed, Message: "container b was not recreated"},
		},
		"a message": {
			"pod is gone", []v1beta1.ContainerRecreateRequestRecreateState{{Name: "a", Phase: succeeded}, {Name: "b", Phase: succeeded}},
			crr.Outcome{Reason: crr.ReasonContainerFailed, Message: "pod is gone"},
		},
	} {
		request := &v1beta1.ContainerRecreateRequest{}
		request.Spec.Containers = []v1beta1.ContainerRecreateRequestContainer{{Name: "a"}, {Name: "b"}}
		request.Status.Message, request.Status.ContainerRecreateStates = tt.message, tt.states
		if got := crr.OutcomeOf(request); got != tt.want {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
	}
}

// The condition says it, whatever the message and the states are.
func TestOutcomeOfARequestWithConditions(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		status         metav1.ConditionStatus
		want           crr.Outcome
		result, reason string
	}{
		"succeeded": {metav1.ConditionTrue, crr.Outcome{}, "succeeded", "Why"},
		"failed":    {metav1.ConditionFalse, crr.Outcome{Reason: "Why", Message: "because"}, "failed", "Why"},
		"none":      {"", crr.Outcome{Reason: crr.ReasonContainerFailed, Message: "text"}, "failed", ""},
	} {
		request := &v1beta1.ContainerRecreateRequest{}
		request.Status.Message = "text"
		if tt.status != "" {
			request.Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionSucceeded, Status: tt.status, Reason: "Why", Message: "because"}}
		}
		if got := crr.OutcomeOf(request); got != tt.want {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
		if result, reason := crr.Result(request.Status); result != tt.result || reason != tt.reason {
			t.Errorf("%s: %s, %s", name, result, reason)
		}
	}
}

// kubectl wait can wait for each of them. Complete is for old clients.
func TestConditionsOfAnEndedRequest(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		outcome crr.Outcome
		want    map[string]metav1.ConditionStatus
	}{
		"succeeded": {crr.Outcome{}, map[string]metav1.ConditionStatus{"Succeeded": "True", "Failed": "False", "Finished": "True", "Complete": "True"}},
		"failed":    {crr.Outcome{Reason: "R", Message: "m"}, map[string]metav1.ConditionStatus{"Succeeded": "False", "Failed": "True", "Finished": "True", "Complete": "True"}},
	} {
		var status v1beta1.ContainerRecreateRequestStatus
		crr.Complete(&status, tt.outcome, 3, time.Unix(1000, 0))
		for kind, want := range tt.want {
			if c := meta.FindStatusCondition(status.Conditions, kind); c == nil || c.Status != want || c.ObservedGeneration != 3 || c.Message != tt.outcome.Message {
				t.Errorf("%s: condition %s is %+v, want %s", name, kind, c, want)
			}
		}
	}
}

// What a container was waiting for is why the deadline has passed.
func TestContainersOfAnEndedRequestSayWhatTheyWaitedFor(t *testing.T) {
	t.Parallel()
	const recreating, pending, succeeded = v1beta1.ContainerRecreateRequestRecreating, v1beta1.ContainerRecreateRequestPending, v1beta1.ContainerRecreateRequestSucceeded
	status := v1beta1.ContainerRecreateRequestStatus{ContainerRecreateStates: []v1beta1.ContainerRecreateRequestRecreateState{
		{Name: "a", Phase: recreating, Message: "waiting for it to be ready"}, {Name: "b", Phase: pending}, {Name: "c", Phase: succeeded},
	}}
	crr.Complete(&status, crr.Outcome{Reason: crr.ReasonDeadlineExceeded, Message: "too late"}, 1, time.Unix(1000, 0))
	var got []string
	for _, state := range status.ContainerRecreateStates {
		got = append(got, string(state.Phase)+" "+state.Message)
	}
	if diff := cmp.Diff([]string{"Failed too late: waiting for it to be ready", "Failed too late", "Succeeded "}, got); diff != "" {
		t.Error(diff)
	}
}
