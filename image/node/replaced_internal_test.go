package node

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	cachetesting "k8s.io/client-go/tools/cache/testing"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/image/queue"
)

// replacedNode notes of which NodeImage a status was written, and does something meanwhile.
type replacedNode struct {
	onNode
	writes []types.UID
	during func()
}

func (n *replacedNode) WriteStatus(_ context.Context, object *v1beta1.NodeImage, _ []string, _ v1beta1.NodeImageStatus) error {
	n.writes = append(n.writes, object.UID)
	if n.during != nil {
		n.during()
	}
	return nil
}

// A NodeImage that is deleted and made anew gets the results that its predecessor had, also if nothing else changes.
func TestNewNodeImageOfTheNameGetsItsResults(t *testing.T) {
	t.Parallel()
	for name, replacedDuringTheWrite := range map[string]bool{"after the write": false, "during the write": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				n := &replacedNode{}
				source := cachetesting.NewFakeControllerSource()
				defer source.Shutdown()
				c, err := New(Config{
					Node: "node-1", API: n, NodeImage: cache.NewSharedIndexInformer(source, &v1beta1.NodeImage{}, 0, cache.Indexers{}),
					Registry: prometheus.NewRegistry(), Logger: slog.New(slog.DiscardHandler),
				})
				if err != nil {
					t.Fatal(err)
				}
				c.queue = queue.New(t.Context(), queue.Config{Puller: n})
				defer c.queue.Stop()
				named := func(uid types.UID) *v1beta1.NodeImage {
					object := &v1beta1.NodeImage{ObjectMeta: metav1.ObjectMeta{Name: "node-1", UID: uid}}
					object.Spec.Images = map[string]v1beta1.ImageSpec{"app": {Tags: []v1beta1.ImageTagSpec{{Tag: "v1"}}}}
					return object
				}
				replace := func() { c.objectChanged(named("two")) }
				if replacedDuringTheWrite {
					n.during = replace
				}
				c.objectChanged(named("one"))
				c.set()
				synctest.Wait() // until the image is there
				if _, err := c.Write(t.Context(), "node-1"); err != nil {
					t.Fatal(err)
				}
				n.during = nil
				if !replacedDuringTheWrite {
					replace()
				}
				c.set()
				synctest.Wait()
				if _, err := c.Write(t.Context(), "node-1"); err != nil {
					t.Fatal(err)
				}
				if len(n.writes) != 2 || n.writes[1] != "two" {
					t.Errorf("statuses were written of %v, want of both", n.writes)
				}
			})
		})
	}
}
