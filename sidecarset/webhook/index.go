package webhook

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	crcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/guard"
	"github.com/refit-project/refit/sidecarset/choice"
	"github.com/refit-project/refit/sidecarset/inject"
	"github.com/refit-project/refit/sidecarset/match"
	"github.com/refit-project/refit/sidecarset/revision"
)

// index holds all SidecarSets that inject, prepared for injection. It follows the cache, and readers never wait.
type index struct {
	cache     crcache.Cache
	namespace string
	guard     *guard.Guard
	log       *slog.Logger

	mu        sync.Mutex
	sets      map[string]*v1beta1.SidecarSet
	revisions map[client.ObjectKey]*appsv1.ControllerRevision

	candidates atomic.Pointer[[]*choice.Candidate] // nil until the caches are synchronized
}

func newIndex(cache crcache.Cache, cfg Config) *index {
	return &index{
		cache: cache, namespace: cfg.Namespace, guard: cfg.Guard, log: cfg.Logger,
		sets: map[string]*v1beta1.SidecarSet{}, revisions: map[client.ObjectKey]*appsv1.ControllerRevision{},
	}
}

// NeedLeaderElection implements manager.LeaderElectionRunnable. Every replica injects.
func (*index) NeedLeaderElection() bool { return false }

// Start keeps the index up to date until ctx ends.
func (x *index) Start(ctx context.Context) error {
	var registrations []toolscache.ResourceEventHandlerRegistration
	for _, kind := range []client.Object{&v1beta1.SidecarSet{}, &appsv1.ControllerRevision{}} {
		informer, err := x.cache.GetInformer(ctx, kind)
		if err != nil {
			return fmt.Errorf("watch %T: %w", kind, err)
		}
		registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc: x.set, UpdateFunc: func(_, object any) { x.set(object) }, DeleteFunc: x.remove,
		})
		if err != nil {
			return fmt.Errorf("watch %T: %w", kind, err)
		}
		defer func() { _ = informer.RemoveEventHandler(registration) }()
		registrations = append(registrations, registration)
	}
	// Start the cache of namespaces with the others, so that the first pod does not wait for it.
	if _, err := x.cache.GetInformer(ctx, partialNamespace()); err != nil {
		return fmt.Errorf("watch namespaces: %w", err)
	}
	var synced []toolscache.DoneChecker
	for _, registration := range registrations {
		synced = append(synced, registration.HasSyncedChecker())
	}
	if !toolscache.WaitFor(ctx, "SidecarSets", synced...) {
		return nil
	}
	x.mu.Lock()
	x.publish()
	x.mu.Unlock()
	<-ctx.Done()
	return nil
}

func (x *index) set(object any) {
	x.mu.Lock()
	defer x.mu.Unlock()
	switch o := object.(type) {
	case *v1beta1.SidecarSet:
		x.sets[o.Name] = o
	case *appsv1.ControllerRevision:
		x.revisions[client.ObjectKeyFromObject(o)] = o
	}
	if x.candidates.Load() != nil {
		x.publish()
	}
}

func (x *index) remove(object any) {
	if gone, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		object = gone.Obj
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	switch o := object.(type) {
	case *v1beta1.SidecarSet:
		delete(x.sets, o.Name)
	case *appsv1.ControllerRevision:
		delete(x.revisions, client.ObjectKeyFromObject(o))
	}
	if x.candidates.Load() != nil {
		x.publish()
	}
}

// publish computes the candidates again, except for SidecarSets that have not changed.
func (x *index) publish() {
	before := map[*v1beta1.SidecarSet]*choice.Candidate{}
	if list := x.candidates.Load(); list != nil {
		for _, c := range *list {
			before[c.SidecarSet] = c
		}
	}
	list := make([]*choice.Candidate, 0, len(x.sets))
	for _, set := range x.sets {
		if !choice.Active(set) {
			continue
		}
		if c := before[set]; c != nil && set.Spec.InjectionStrategy.Revision == nil {
			list = append(list, c)
			continue
		}
		var c *choice.Candidate
		err := x.guard.Do(where, guard.Of(set), func() (err error) {
			c, err = x.candidate(set)
			return err
		})
		if err != nil {
			x.log.Error("SidecarSet cannot be injected", "sidecarset", set.Name, "err", err)
			continue
		}
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b *choice.Candidate) int { return cmp.Compare(a.SidecarSet.Name, b.SidecarSet.Name) })
	x.candidates.Store(&list)
}

func (x *index) candidate(set *v1beta1.SidecarSet) (*choice.Candidate, error) {
	selector, err := match.NewSelector(&set.Spec)
	if err != nil {
		return nil, err
	}
	c := &choice.Candidate{SidecarSet: set, Selector: selector}
	c.Latest, c.Err = inject.Compile(set, x.revisionName(set))
	if set.Spec.InjectionStrategy.Revision == nil {
		return c, nil
	}
	pinned := revision.Pinned(set, x.history(set))
	if pinned == nil {
		x.log.Warn("the revision of spec.injectionStrategy.revision does not exist", "sidecarset", set.Name,
			"missingPolicy", set.Spec.InjectionStrategy.Revision.MissingPolicy)
		return c, nil
	}
	restored, err := revision.Restore(pinned)
	if err != nil {
		x.log.Error("a ControllerRevision cannot be read, and counts as missing", "sidecarset", set.Name, "err", err)
		return c, nil
	}
	if c.Pinned, err = inject.Compile(withContent(set, restored), pinned.Name); err != nil {
		x.log.Error("a ControllerRevision cannot be injected, and counts as missing", "sidecarset", set.Name, "revision", pinned.Name, "err", err)
	}
	return c, nil
}

// revisionName returns the name of the spec's revision: from the status if the controller has observed the spec, and
// otherwise computed.
func (x *index) revisionName(set *v1beta1.SidecarSet) string {
	if set.Status.ObservedGeneration == set.Generation && set.Status.LatestRevision != "" {
		return set.Status.LatestRevision
	}
	if expected, _, err := revision.Plan(set, x.namespace, x.history(set)); err == nil {
		return expected.Name
	}
	return ""
}

// history returns the revisions that the SidecarSet owns; a matching name alone is not trusted.
func (x *index) history(set *v1beta1.SidecarSet) []*appsv1.ControllerRevision {
	var list []*appsv1.ControllerRevision
	for _, r := range x.revisions {
		if r.Labels[v1beta1.LabelSidecarSetName] == set.Name && metav1.IsControlledBy(r, set) {
			list = append(list, r)
		}
	}
	return revision.Merged(x.namespace, list)
}

// withContent returns the SidecarSet with the fields stored in a revision.
func withContent(set *v1beta1.SidecarSet, content *v1beta1.SidecarSetSpec) *v1beta1.SidecarSet {
	restored := *set
	restored.Spec.Containers, restored.Spec.InitContainers, restored.Spec.Volumes = content.Containers, content.InitContainers, content.Volumes
	restored.Spec.ImagePullSecrets, restored.Spec.PatchPodMetadata = content.ImagePullSecrets, content.PatchPodMetadata
	restored.Spec.PodVolumes, restored.Spec.PatchContainers = content.PodVolumes, content.PatchContainers
	return &restored
}
