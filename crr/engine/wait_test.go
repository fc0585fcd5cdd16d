package engine

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/crr/queue"
)

// A queue of requests costs one write for each that waits, and not one more whenever another is the first. The sidecar
// also says that no daemon is needed for it.
func TestWaitingRequestIsWrittenOnce(t *testing.T) {
	t.Parallel()
	for _, signalsOnly := range []bool{false, true} {
		s := &store{conditions: true}
		e, requests := queueOf(t, s, signalsOnly)
		for _, first := range requests[:2] {
			waitInLine(t, e)
			e.Remove(first)
		}
		waitInLine(t, e)
		if got := strings.Join(s.written, " "); got != "b c d" {
			t.Errorf("signals only %t: wrote %q", signalsOnly, got)
		}
		if status := e.get("d").Status; (len(status.Conditions) == 1) != signalsOnly {
			t.Errorf("signals only %t: %+v", signalsOnly, status)
		}
	}
}

// A request that waits never names one that has ended or is gone while others are in front of it.
func TestWaitingRequestNamesTheOneInFrontThatIsOpen(t *testing.T) {
	t.Parallel()
	s := &store{conditions: true}
	e, requests := queueOf(t, s, false)
	waitInLine(t, e)
	e.Remove(requests[2])
	waitInLine(t, e)
	if got := e.get("d").Status.Message; got != "waiting for ContainerRecreateRequest b of the same pod" {
		t.Errorf("c is gone, d: %s", got)
	}
	e.get("b").Spec.ActiveDeadlineSeconds = new(int64(1)) // it has passed
	waitInLine(t, e)
	if got := e.get("d").Status.Message; got != "waiting for ContainerRecreateRequest a of the same pod" {
		t.Errorf("b has ended, d: %s", got)
	}
}

func waitInLine(t *testing.T, e *Engine) {
	t.Helper()
	if _, err := e.waitInLine(t.Context(), key, queue.Order(e.ofPod(key))); err != nil {
		t.Fatal(err)
	}
}

// queueOf is an engine with the requests a, b, c and d of one pod, created in this order.
func queueOf(t *testing.T, s *store, signalsOnly bool) (*Engine, []*crr.Request) {
	t.Helper()
	e, _ := engineOn(newWorld(), s, signalsOnly)
	var all []*crr.Request
	for i, name := range []string{"a", "b", "c", "d"} {
		request := requestAt("1")
		request.Name, request.UID, request.CreationTimestamp = name, types.UID(name), metav1.NewTime(time.Now().Add(time.Duration(i-10)*time.Second))
		e.Put(key, request)
		all = append(all, request)
	}
	return e, all
}
