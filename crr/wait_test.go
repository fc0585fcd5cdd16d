package crr_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
)

func queued(name string, created time.Duration, changes ...func(*crr.Request)) *crr.Request {
	request := &crr.Request{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(noon.Add(created))}}
	for _, change := range changes {
		change(request)
	}
	return request
}

func TestWaitNamesTheRequestInFront(t *testing.T) {
	t.Parallel()
	request := queued("second", 0, func(r *crr.Request) { r.Spec.ActiveDeadlineSeconds = new(int64(60)) })
	decision := crr.Wait(request, queued("first", 0), crr.Options{}, time.Hour, noon.Add(-time.Hour))
	wantDiff(t, "phase", decision.Status.Phase, v1beta1.ContainerRecreateRequestPending)
	wantDiff(t, "message", decision.Status.Message, "waiting for ContainerRecreateRequest first of the same pod")
	wantDiff(t, "woken at the deadline on our clock, which is an hour behind", decision.Again, noon.Add(time.Minute-time.Hour))
}

// What was decided a while ago, before a wait for a slot or a hook, may not be done any more.
func TestMayAct(t *testing.T) {
	t.Parallel()
	limited := func(r *crr.Request) { r.Spec.ActiveDeadlineSeconds = new(int64(60)) }
	for name, tt := range map[string]struct {
		request *crr.Request
		offset  time.Duration
		want    string // in the error; empty: it may
	}{
		"active":                       {queued("r", 0), 0, ""},
		"within its deadline":          {queued("r", -59*time.Second, limited), 0, ""},
		"gone":                         {nil, 0, "deleted"},
		"being deleted":                {queued("r", 0, func(r *crr.Request) { r.DeletionTimestamp = &metav1.Time{Time: noon} }), 0, "being deleted"},
		"ended":                        {queued("r", 0, func(r *crr.Request) { r.Status.Phase = v1beta1.ContainerRecreateRequestCompleted }), 0, "ended"},
		"past its deadline":            {queued("r", -time.Minute, limited), 0, "activeDeadlineSeconds"},
		"past it by the API's clock":   {queued("r", 0, limited), time.Minute, "activeDeadlineSeconds"},
		"within it by the API's clock": {queued("r", -time.Hour, limited), -time.Hour, ""},
	} {
		err := crr.MayAct(tt.request, tt.offset, noon)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}
