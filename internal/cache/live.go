package cache

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/internal/cache/trim"
)

const (
	// livePage is the number of objects that are read at a time, and livePages how many pages are read at the same time. An object has
	// up to 1.5 MiB, and takes about three times as much while it is decoded: together they bound what the lists of all controllers
	// need, whatever tenants write.
	livePage, livePages = 20, 2
	// ordinaryPod is the size from which a pod is large, in bytes as the API server sends it.
	ordinaryPod = trim.MaxPod
)

// Live returns a manager whose [ctrl.Manager.GetAPIReader] lists in pages, so that large objects need little memory. Objects other than
// pods and Secrets have no managedFields, and no annotations beyond the bound of the cache.
func Live(mgr ctrl.Manager) ctrl.Manager {
	return liveManager{mgr, &liveReader{mgr.GetAPIReader(), make(chan struct{}, livePages)}}
}

type liveManager struct {
	ctrl.Manager
	live client.Reader
}

func (m liveManager) GetAPIReader() client.Reader { return m.live }

type liveReader struct {
	client.Reader
	pages chan struct{}
}

// List implements client.Reader. Callers that ask for pages themselves get smaller ones.
func (l *liveReader) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	asked := (&client.ListOptions{}).ApplyOptions(options)
	if asked.Limit > 0 {
		return l.page(ctx, list, min(asked.Limit, livePage), asked.Continue, options)
	}
	empty := list.DeepCopyObject()
	if err := l.page(ctx, list, livePage, "", options); err != nil || list.GetContinue() == "" {
		return err
	}
	all, err := meta.ExtractList(list)
	for next := list.GetContinue(); err == nil && next != ""; {
		page := empty.DeepCopyObject().(client.ObjectList)
		if err := l.page(ctx, page, livePage, next, options); err != nil {
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

func (l *liveReader) page(ctx context.Context, list client.ObjectList, limit int64, next string, options []client.ListOption) error {
	select {
	case l.pages <- struct{}{}:
		defer func() { <-l.pages }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if err := l.Reader.List(ctx, list, append(slices.Clone(options), client.Limit(limit), client.Continue(next))...); err != nil {
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

// LivePods lists pods from the API server, not from the cache, and trims them. It returns as well by how many bytes they were larger
// than ordinary pods, all together.
func LivePods(ctx context.Context, live client.Reader, trimmer *trim.Pods, options ...client.ListOption) (pods []*corev1.Pod, excess int, err error) {
	for next := ""; ; {
		var page corev1.PodList
		if err := live.List(ctx, &page, append(slices.Clone(options), client.Limit(livePage), client.Continue(next))...); err != nil {
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
