package control

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/test/kit/stalecache"
)

// narrow takes a second for each write, refuses labels of the name "refused", and counts writes.
type narrow struct {
	client.Client
	writes int
}

func (n *narrow) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error {
	n.writes++
	time.Sleep(time.Second) // of synctest
	if object.GetLabels()["refused"] != "" {
		return errors.New("etcdserver: request is too large")
	}
	return n.Client.Patch(ctx, object, patch, options...)
}

// outcomes of writers of a NodeImage: nil, an error, or a panic.
func outcomes(t *testing.T, a *api, writers []func(*v1beta1.NodeImage) bool) []any {
	t.Helper()
	ended := make([]any, len(writers))
	done := make(chan struct{})
	for i, apply := range writers {
		go func() {
			defer func() { done <- struct{}{} }()
			defer func() {
				if r := recover(); r != nil {
					ended[i] = r
				}
			}()
			if err := a.write(t.Context(), "a", apply); err != nil {
				ended[i] = err
			}
		}()
	}
	for range writers {
		<-done
	}
	return ended
}

func labelled(name string) func(*v1beta1.NodeImage) bool {
	return func(object *v1beta1.NodeImage) bool {
		metav1.SetMetaDataLabel(&object.ObjectMeta, name, "was-here")
		return true
	}
}

// A hundred jobs that begin at once take a few writes of a NodeImage, not a hundred, and each waits for a few: the job
// of another tenant would wait for a hundred.
func TestChangesThatWaitAreWrittenAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, node("a", nil), pullJob())
		w.look()
		server := &narrow{Client: w.Client}
		w.api.client, w.api.Live = server, server
		var writers []func(*v1beta1.NodeImage) bool
		for n := range 100 {
			writers = append(writers, labelled(fmt.Sprint("writer-", n)))
		}
		began := time.Now()
		for i, err := range outcomes(t, w.api, writers) {
			if err != nil {
				t.Errorf("%d: %v", i, err)
			}
		}
		if labels := w.nodeImage("a").Labels; len(labels) != 100 || server.writes > 2 || time.Since(began) > 2500*time.Millisecond {
			t.Errorf("%d labels after %d writes and %s", len(labels), server.writes, time.Since(began))
		}
	})
}

// A change that fails, or that the API server refuses, harms none of those that are written with it.
func TestAChangeThatFailsHarmsNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, node("a", nil), pullJob())
		w.look()
		server := &narrow{Client: w.Client}
		w.api.client, w.api.Live = server, server
		panics := func(object *v1beta1.NodeImage) bool {
			metav1.SetMetaDataLabel(&object.ObjectMeta, "half", "done")
			panic("planted")
		}
		ended := outcomes(t, w.api, []func(*v1beta1.NodeImage) bool{labelled("first"), labelled("second"), panics, labelled("refused"), labelled("third")})
		if ended[0] != nil || ended[1] != nil || ended[4] != nil || ended[2] != "planted" || ended[3] == nil || ended[3] == "planted" {
			t.Errorf("%v", ended)
		}
		if labels := w.nodeImage("a").Labels; len(labels) != 3 {
			t.Errorf("labels %v", labels)
		}
	})
}

// A caller that gives up takes its change with it, unless it is being written.
func TestAChangeWhoseCallerGivesUpIsNotMade(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, node("a", nil), pullJob())
		w.look()
		server := &narrow{Client: w.Client}
		w.api.client, w.api.Live = server, server
		ended := make(chan error, 2)
		go func() { ended <- w.api.write(t.Context(), "a", labelled("first")) }()
		synctest.Wait()
		impatient, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if err := w.api.write(impatient, "a", labelled("second")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if labels := w.nodeImage("a").Labels; len(labels) != 1 {
			t.Errorf("labels %v", labels)
		}
	})
}

// The cache has not shown what the manager has written last: the API server is asked, and not sent what it would refuse.
func TestWritesOfTheManagerDoNotConflictWithItsLastOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t, node("a", nil), pullJob())
	w.look()
	before := w.nodeImage("a")
	server := &calls{Client: w.Client}
	w.api.Live = server
	w.api.client = writes{Client: stalecache.Client{Client: w.Client, Object: before}, to: server}
	for n := range 3 {
		version := fmt.Sprint("v", n)
		w.check(w.api.write(t.Context(), "a", func(object *v1beta1.NodeImage) bool {
			object.Spec.Images[version] = v1beta1.ImageSpec{Tags: []v1beta1.ImageTagSpec{{Tag: "1"}}}
			return true
		}))
	}
	if got := len(w.nodeImage("a").Spec.Images); got != 4 || server.writes != 3 {
		t.Errorf("%d images after %d writes, want 4 after 3", got, server.writes)
	}
}
