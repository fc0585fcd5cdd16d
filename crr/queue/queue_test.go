package queue_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/crr/queue"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func queued(name string, created time.Duration, changes ...func(*crr.Request)) *crr.Request {
	request := &crr.Request{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(noon.Add(created))}}
	for _, change := range changes {
		change(request)
	}
	return request
}

func TestQueue(t *testing.T) {
	t.Parallel()
	admitted := func(after time.Duration) func(*crr.Request) {
		return func(r *crr.Request) {
			r.Annotations = map[string]string{v1beta1.AnnotationAdmittedAt: noon.Add(after).Format(time.RFC3339Nano)}
		}
	}
	phase := func(p v1beta1.ContainerRecreateRequestPhase) func(*crr.Request) {
		return func(r *crr.Request) { r.Status.Phase = p }
	}
	begun, completed := phase(v1beta1.ContainerRecreateRequestRecreating), phase(v1beta1.ContainerRecreateRequestCompleted)
	deleted := func(r *crr.Request) { r.DeletionTimestamp = &metav1.Time{Time: noon} }
	endedByTime := func(r *crr.Request) { r.Status.CompletionTime = &metav1.Time{Time: noon} }
	for name, tt := range map[string]struct {
		requests []*crr.Request
		want     string
	}{
		"by creation":                      {[]*crr.Request{queued("b", time.Second), queued("a", 2*time.Second), queued("c", 0)}, "c b a"},
		"begun stays first":                {[]*crr.Request{queued("older", 0), queued("begun", time.Minute, begun)}, "begun older"},
		"of one second, by admission":      {[]*crr.Request{queued("a", 0, admitted(3*time.Millisecond)), queued("b", 0, admitted(time.Millisecond))}, "b a"},
		"creation comes before admission":  {[]*crr.Request{queued("a", time.Second, admitted(0)), queued("b", 0, admitted(time.Minute))}, "b a"},
		"not admitted, by name":            {[]*crr.Request{queued("b", 0), queued("a", 0), queued("c", 0, admitted(0))}, "a b c"},
		"malformed admission, as if none":  {[]*crr.Request{queued("b", 0, admitted(0)), queued("c", 0, func(r *crr.Request) { r.Annotations = map[string]string{v1beta1.AnnotationAdmittedAt: "soon"} })}, "c b"},
		"deleted ones hold nothing up":     {[]*crr.Request{queued("a", 0, deleted), queued("b", time.Second)}, "b"},
		"begun and deleted":                {[]*crr.Request{queued("a", 0, begun, deleted), queued("b", time.Second)}, "b"},
		"completed ones hold nothing up":   {[]*crr.Request{queued("a", 0, completed), queued("b", time.Second)}, "b"},
		"completed by its completion time": {[]*crr.Request{queued("a", 0, begun, endedByTime), queued("b", time.Second)}, "b"},
		"none is left":                     {[]*crr.Request{queued("a", 0, completed)}, ""},
	} {
		var got []string
		for _, r := range queue.Order(tt.requests) {
			got = append(got, r.Name)
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}
