package cache

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/internal/cache/trim"
)

const (
	// LivePage is the number of objects that are read at a time, and livePages how many pages are read at the same time by all
	// controllers and webhooks. An object has up to 1.5 MiB, and needs a multiple of that while it is decoded, whatever is kept of it.
	LivePage, livePages = 20, 2
	// ordinaryPod is the size from which a pod is large, in bytes as the API server sends it.
	ordinaryPod = trim.MaxPod
)

// Paged returns a reader from the API server that lists in pages, so that the lists of large objects need less memory. Objects other than
// pods and Secrets are trimmed as in the cache.
func Paged(reader client.Reader) client.Reader {
	return &pagedReader{reader, make(chan struct{}, livePages)}
}

type pagedReader struct {
	client.Reader
	pages chan struct{}
}

// List implements client.Reader. Callers that ask for pages themselves get smaller ones.
func (p *pagedReader) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	asked := (&client.ListOptions{}).ApplyOptions(options)
	if asked.Limit > 0 {
		return p.page(ctx, list, min(asked.Limit, LivePage), asked.Continue, options)
	}
	empty := list.DeepCopyObject()
	if err := p.page(ctx, list, LivePage, "", options); err != nil || list.GetContinue() == "" {
		return err
	}
	all, err := meta.ExtractList(list)
	for next := list.GetContinue(); err == nil && next != ""; {
		page := empty.DeepCopyObject().(client.ObjectList)
		if err := p.page(ctx, page, LivePage, next, options); err != nil {
			return err
		}
		var items []runtime.Object
		items, err = meta.ExtractList(page)
		all, next = append(all, items...), page.GetContinue()
	}
	if err != nil {
		return fmt.Errorf("read items: %w", err)
	}
	list.SetContinue("")
	list.SetRemainingItemCount(nil)
	return meta.SetList(list, all)
}

func (p *pagedReader) page(ctx context.Context, list client.ObjectList, limit int64, next string, options []client.ListOption) error {
	select {
	case p.pages <- struct{}{}:
		defer func() { <-p.pages }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if err := p.Reader.List(ctx, list, append(slices.Clone(options), client.Limit(limit), client.Continue(next))...); err != nil {
		return err
	}
	return meta.EachListItem(list, func(object runtime.Object) error {
		switch object.(type) {
		case *corev1.Pod: // callers trim them, or need all of them
		case *corev1.Secret: // written as a whole
		default:
			if _, err := trimObject(object); err != nil {
				return err
			}
		}
		return nil
	})
}

// LivePods lists pods from the API server, not from the cache, and trims them. excess is by how many bytes
// they were larger than ordinary pods, added up.
func LivePods(ctx context.Context, live client.Reader, trimmer *trim.Pods, options ...client.ListOption) (pods []*corev1.Pod, excess int, err error) {
	for next := ""; ; {
		var page corev1.PodList
		if err := live.List(ctx, &page, append(slices.Clone(options), client.Limit(LivePage), client.Continue(next))...); err != nil {
			return nil, excess, fmt.Errorf("list pods: %w", err)
		}
		for i := range page.Items {
			excess += max(0, page.Items[i].Size()-ordinaryPod)
			pods = append(pods, trimmer.Of(&page.Items[i]))
		}
		if next = page.Continue; next == "" {
			return pods, excess, nil
		}
	}
}
