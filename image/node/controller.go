package node

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/image"
	"github.com/refit-project/refit/image/queue"
	"github.com/refit-project/refit/internal/guard"
	"github.com/refit-project/refit/internal/result"
)

// Reasons of Events. kruise-daemon uses the same.
const (
	eventSucceeded = "PullImageSucceed"
	eventFailed    = "PullImageFailed"
)

// Controller runs the pulls of the node's NodeImage and writes its status. Create it with New.
type Controller struct {
	config  Config
	metrics *metrics
	writer  *result.Writer[string]
	synced  cache.InformerSynced
	wake    chan struct{} // holds one element if the object has changed

	queue *queue.Queue // set by Run

	mu      sync.Mutex
	object  *v1beta1.NodeImage
	applied *v1beta1.NodeImage      // the object whose spec the queue has
	written v1beta1.NodeImageStatus // the status in the API server, as far as known
	ours    bool                    // written is the status of this object
}

// Run works until ctx ends, and returns when its goroutines have.
func (c *Controller) Run(ctx context.Context) error {
	var work sync.WaitGroup
	defer work.Wait()
	work.Go(func() { c.config.NodeImage.RunWithContext(ctx) })
	if !cache.WaitForCacheSync(ctx.Done(), c.synced) {
		return nil
	}
	pulls := queue.New(ctx, queue.Config{
		Puller: guarded{puller{config: c.config, metrics: c.metrics}, c.config.Guard}, Parallel: c.config.Parallel,
		Changed: func() { c.writer.Request(c.config.Node) }, Ended: c.ended,
	})
	defer pulls.Stop()
	c.queue = pulls
	work.Go(func() { _ = c.writer.Run(ctx) }) // its only error is the end of ctx
	c.wakeUp()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-c.wake:
			c.config.Guard.Try("images", c.subject(), func() { c.set() }) //nolint:contextcheck // the queue already has a context
		}
	}
}

// subject returns the NodeImage as the subject of a guard.
func (c *Controller) subject() guard.Subject {
	return guard.Named(guard.Object{Kind: "NodeImage", Name: c.config.Node})
}

func (c *Controller) wakeUp() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// objectChanged stores the new version of the NodeImage, or nil if it has been deleted.
func (c *Controller) objectChanged(object *v1beta1.NodeImage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if object == nil || c.object == nil || c.object.UID != object.UID {
		c.ours = false
	}
	c.object = object
	if object != nil && !c.ours {
		c.written, c.ours = object.Status, true
	}
	c.wakeUp()
}

// set passes the images of the spec to the queue.
func (c *Controller) set() {
	c.mu.Lock()
	object := c.object
	c.mu.Unlock()
	if object == nil {
		c.queue.Set(nil, nil)
	} else {
		c.queue.Set(image.Wanted(object.Spec), func(want image.Want) (image.State, bool) {
			return image.Known(&object.Status, want)
		})
	}
	c.mu.Lock()
	c.applied = object
	c.mu.Unlock()
	c.writer.Request(c.config.Node)
}

// Write implements result.Destination. It writes the status if it has changed.
func (c *Controller) Write(ctx context.Context, _ string) (result.Requests, error) {
	c.mu.Lock()
	object, before := c.applied, c.written
	c.mu.Unlock()
	states := c.queue.States() // at least as new as the spec, so the outcome of one version is never written for the next one
	if object == nil || object.DeletionTimestamp != nil {
		return result.Requests{}, nil
	}
	status := image.Status(object.Spec, states)
	if !image.News(before, status) {
		return result.Requests{}, nil
	}
	names := slices.Concat(slices.Collect(maps.Keys(before.ImageStatuses)), slices.Collect(maps.Keys(object.Status.ImageStatuses)))
	err := c.config.API.WriteStatus(ctx, object, names, status)
	c.metrics.wrote(err)
	if err == nil {
		c.mu.Lock()
		if c.object != nil && c.object.UID == object.UID {
			c.written = status
		}
		c.mu.Unlock()
	} else if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		err = fmt.Errorf("%w: %w", result.ErrStale, err)
	}
	return result.Requests{Writes: 1}, err
}

// ended sends an Event about a pull that has succeeded or failed: about the NodeImage, and for a failure also about the
// jobs that requested it.
func (c *Controller) ended(want image.Want, state image.State) {
	c.metrics.ended(state)
	c.writer.RequestAfter(c.config.Node, endSettle, endInterval)
	// The queue calls this method with its lock held. mu must never be held while the queue is called.
	c.mu.Lock()
	about := corev1.ObjectReference{APIVersion: v1beta1.GroupVersion().String(), Kind: v1beta1.KindNodeImage, Name: c.config.Node}
	if c.object != nil {
		about.UID = c.object.UID
	}
	c.mu.Unlock()
	if state.Phase == v1beta1.ImagePhaseSucceeded {
		message := fmt.Sprintf("Pulled image %s in %s", want, state.Completed.Sub(state.Started))
		if state.Present {
			message = fmt.Sprintf("The node has image %s already", want)
		}
		c.config.Events.Event(about, corev1.EventTypeNormal, eventSucceeded, message)
		return
	}
	message := fmt.Sprintf("Cannot pull image %s: %s", want, state.Message)
	c.config.Logger.Warn("image not pulled", "image", want.String(), "err", state.Message)
	c.config.Events.Event(about, corev1.EventTypeWarning, eventFailed, message)
	for _, owner := range want.Owners {
		namespace, name, _ := strings.Cut(owner, "/")
		c.config.Events.Event(corev1.ObjectReference{
			APIVersion: v1beta1.GroupVersion().String(), Kind: v1beta1.KindImagePullJob, Namespace: namespace, Name: name,
		}, corev1.EventTypeWarning, eventFailed, "Node "+c.config.Node+": "+message)
	}
}
