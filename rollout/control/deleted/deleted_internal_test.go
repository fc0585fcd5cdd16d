package deleted

import (
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
)

var noon = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

func requestOf(pod string) *v1beta1.ContainerRecreateRequest {
	request := &v1beta1.ContainerRecreateRequest{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "request-" + pod}}
	request.Spec.PodName = pod
	return request
}

// The remaining time of its stop is counted from its deletion, not from when the manager noticed it.
func TestARequestThatWasDeletedLongAgoIsForgottenSooner(t *testing.T) {
	t.Parallel()
	request := requestOf("web-abc-1")
	request.Status.ContainerRecreateStates = []v1beta1.ContainerRecreateRequestRecreateState{{Name: "app"}}
	request.DeletionTimestamp = &metav1.Time{Time: noon.Add(-10 * time.Minute)}
	for after, kept := range map[time.Duration]int{5 * time.Minute: 1, 6 * time.Minute: 0} {
		var d Requests
		d.Note(request, noon)
		if got := d.Of("shop", noon.Add(after)); len(got) != kept {
			t.Errorf("%d are kept %s later", len(got), after)
		}
	}
}

func TestOfManyDeletedRequestsTheLastAreKept(t *testing.T) {
	t.Parallel()
	var d Requests
	for i := range maxDeleted + 2 {
		request := requestOf(strconv.Itoa(i))
		request.Status.ContainerRecreateStates = []v1beta1.ContainerRecreateRequestRecreateState{{Name: "app"}}
		d.Note(request, noon)
	}
	got := d.Of("shop", noon)
	if first, last := got[0].Spec.PodName, got[len(got)-1].Spec.PodName; first != "2" || last != strconv.Itoa(maxDeleted+1) {
		t.Errorf("%s to %s", first, last)
	}
}

// It may be the last event of a rollout that waits for the container to be stopped.
func TestADeletedRequestIsKeptForAsLongAsItsStopMayTake(t *testing.T) {
	t.Parallel()
	request := requestOf("web-abc-1")
	request.Status.ContainerRecreateStates = []v1beta1.ContainerRecreateRequestRecreateState{{Name: "app"}}
	for after, kept := range map[time.Duration]int{Keep: 1, Keep + time.Second: 0} {
		var d Requests
		d.Note(request, noon)
		if got := d.Of("bank", noon); len(got) != 0 {
			t.Errorf("%d of another namespace", len(got))
		}
		if got := d.Of("shop", noon.Add(after)); len(got) != kept {
			t.Errorf("%d are kept after %s", len(got), after)
		}
	}
}

func TestDeletedRequestsThatAreKeptAreBounded(t *testing.T) {
	t.Parallel()
	var kept Requests
	kept.Note(requestOf("untouched"), noon)
	ended := requestOf("ended")
	ended.Status.ContainerRecreateStates = []v1beta1.ContainerRecreateRequestRecreateState{{Name: "app"}}
	crr.Complete(&ended.Status, crr.Outcome{}, 1, noon.Add(-time.Hour))
	kept.Note(ended, noon)
	if got := kept.Of("shop", noon); len(got) != 0 {
		t.Errorf("%d are kept that stop nothing", len(got))
	}
	ended.Status.CompletionTime = nil
	for range maxDeleted + 5 {
		kept.Note(ended, noon)
	}
	if got := kept.Of("shop", noon); len(got) != maxDeleted {
		t.Errorf("%d are kept", len(got))
	}
	if got := kept.Of("bank", noon); len(got) != 0 {
		t.Errorf("%d of another namespace", len(got))
	}
}
