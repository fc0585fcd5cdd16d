package node

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	cachetesting "k8s.io/client-go/tools/cache/testing"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/image"
	"github.com/refit-project/refit/image/queue"
)

// onNode is a node that has every image, and the API server.
type onNode struct{ written v1beta1.NodeImageStatus }

func (*onNode) Present(context.Context, image.Reference) (string, error) { return "sha256:id", nil }

func (*onNode) Pull(context.Context, image.Want, func(pulled, total int64)) (queue.Pulled, error) {
	return queue.Pulled{ID: "sha256:id"}, nil
}

func (n *onNode) WriteStatus(_ context.Context, _ *v1beta1.NodeImage, _ []string, status v1beta1.NodeImageStatus) error {
	n.written = status
	return nil
}

// A job would end with it, without a pull.
func TestOutcomeOfAVersionIsNotWrittenAsThatOfTheNext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := &onNode{}
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
		version := func(number int64) *v1beta1.NodeImage {
			object := &v1beta1.NodeImage{ObjectMeta: metav1.ObjectMeta{Name: "node-1", UID: "one"}}
			object.Spec.Images = map[string]v1beta1.ImageSpec{"app": {Tags: []v1beta1.ImageTagSpec{{Tag: "v1", Version: number}}}}
			return object
		}
		c.objectChanged(version(0))
		c.set()
		synctest.Wait() // until the image is there
		c.objectChanged(version(1))
		for _, want := range []int64{0, 1} {
			if _, err := c.Write(t.Context(), "node-1"); err != nil {
				t.Fatal(err)
			}
			tag := image.TagStatus(&n.written, image.Reference{Repository: "app", Tag: "v1"})
			if tag == nil || tag.Version != want || tag.Phase != v1beta1.ImagePhaseSucceeded {
				t.Errorf("%+v, want version %d", tag, want)
			}
			c.set()
			synctest.Wait()
		}
	})
}
