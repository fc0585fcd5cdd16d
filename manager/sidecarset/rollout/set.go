package rollout

import (
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/manager/cache"
	"github.com/refit-project/refit/manager/sidecarset/report"
	"github.com/refit-project/refit/rollout/budget"
	"github.com/refit-project/refit/sidecarset/annotation"
	"github.com/refit-project/refit/sidecarset/choice"
	"github.com/refit-project/refit/sidecarset/match"
	"github.com/refit-project/refit/sidecarset/missed"
	"github.com/refit-project/refit/sidecarset/rollout"
	"github.com/refit-project/refit/sidecarset/status"
	"github.com/refit-project/refit/sidecarset/upgrade"
)

// set is what is kept of a SidecarSet: its newest version, and what is known of its pods.
type set struct {
	object   *v1beta1.SidecarSet
	target   *upgrade.Target
	strategy rollout.Strategy
	selector match.Selector
	// Only the reconciler looks at these.
	pulled   bool        // the images
	reported report.Last // status

	mu          sync.Mutex
	fleet       *rollout.Fleet
	known       map[types.NamespacedName]*known
	notInjected map[types.NamespacedName]missed.Pod
	repair      missed.Repair
	leaving     map[types.NamespacedName]*rollout.Leaving // pods that are being deleted because they were evicted
	ending      map[types.NamespacedName]types.UID        // pods with a controller that are being deleted for another reason
	examples    map[types.NamespacedName]string           // pods that have failed or cannot be updated, with the reason
	due         map[types.NamespacedName]time.Time
	unfinished  map[types.NamespacedName]bool                 // an update that goes on without being chosen
	gone        map[types.UID]bool                            // pods deleted while all are read from the API server; nil otherwise
	held        rollout.Hold                                  // of the last selection
	disruption  string                                        // the PodDisruptionBudget that holds one of its pods, as namespace/name
	conditions  map[types.NamespacedName]*corev1.PodCondition // that are to be written
}

// known is what is kept of a pod beside what the fleet has.
type known struct {
	uid types.UID
	// version is that of our last write, or of the last read from the API server. Events from before it are dropped.
	version string
	// revision is the ControllerRevision that the pod names.
	revision string
	// obstacles and the annotations for which they were found; refused are those that an update ran into.
	obstacles, refused []string
	judgedFor          string
	failures           int
	retryAt            time.Time
}

// newSet compiles a SidecarSet. Errors are about selectors, which admission refuses.
func newSet(object *v1beta1.SidecarSet, latest string, history []*appsv1.ControllerRevision) (*set, error) {
	s := &set{
		object: object, known: map[types.NamespacedName]*known{}, notInjected: map[types.NamespacedName]missed.Pod{},
		examples: map[types.NamespacedName]string{}, due: map[types.NamespacedName]time.Time{}, unfinished: map[types.NamespacedName]bool{},
		conditions: map[types.NamespacedName]*corev1.PodCondition{}, leaving: map[types.NamespacedName]*rollout.Leaving{},
		ending: map[types.NamespacedName]types.UID{},
	}
	number, err := strconv.ParseUint(object.ResourceVersion, 10, 62)
	if err != nil {
		number = uint64(object.Generation) //nolint:gosec // not negative. Resource versions are numbers; if not, generations grow too
	}
	s.target = upgrade.NewTarget(object, latest, number, upgrade.NewHistory(history))
	if s.selector, err = match.NewSelector(&object.Spec); err != nil {
		return nil, err
	}
	if s.strategy, err = rollout.NewStrategy(&object.Spec.UpdateStrategy, status.Paused(object, latest)); err != nil {
		return nil, err
	}
	// Otherwise the pod that is created in the place of an evicted one would be evicted again, for ever.
	s.strategy.Recreate = s.strategy.Recreate && choice.InjectsLatest(object, latest, history)
	s.fleet = rollout.NewFleet(s.strategy.Scatter)
	return s, nil
}

// inherit takes over what was kept of the SidecarSet's version before: which of our writes the cache may not have yet, and
// which pods were evicted.
func (s *set) inherit(before *set) {
	before.mu.Lock()
	defer before.mu.Unlock()
	for key, k := range before.known {
		s.known[key] = &known{uid: k.uid, version: k.version}
	}
	s.repair, s.leaving, s.ending = before.repair, maps.Clone(before.leaving), maps.Clone(before.ending)
	s.reported = before.reported.Inherit()
	s.fleet.Inherit(before.fleet)
}

// observe updates what is known of a pod. Selected says that the SidecarSet selects it, why is the reason if it was not injected
// although it is selected; nil if it need not be. Requests are those that name it. It reports whether something has changed.
func (s *set) observe(pod *corev1.Pod, selected bool, why *missed.Pod, requests []*v1beta1.ContainerRecreateRequest, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
	before, had := s.fleet.Get(key)
	was, counted := s.notInjected[key]
	if k := s.known[key]; s.gone[pod.UID] || k != nil && cache.Older(pod.ResourceVersion, k.version) {
		return false
	}
	active := pod.DeletionTimestamp == nil && pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed
	injected := slices.Contains(annotation.Names(pod), s.object.Name)
	if !selected || !active || !injected {
		s.forget(key)
		if selected && (injected || why != nil) {
			s.leave(key, pod, injected)
		}
		if !selected || !active || why == nil {
			return had || counted
		}
		s.notInjected[key] = *why
		return had || !counted || was != *why
	}
	delete(s.notInjected, key)
	s.judge(key, pod, requests, now)
	after, _ := s.fleet.Get(key)
	if s.conditions[key] != nil || s.unfinished[key] {
		return true
	}
	return !had || counted || !before.Equal(&after)
}

// judge compares a pod with the target. The lock is held.
func (s *set) judge(key types.NamespacedName, pod *corev1.Pod, requests []*v1beta1.ContainerRecreateRequest, now time.Time) {
	k := s.known[key]
	if k == nil || k.uid != pod.UID {
		k = &known{uid: pod.UID}
		s.known[key] = k
	}
	marks := pod.Annotations[v1beta1.AnnotationSidecarSetHash] + pod.Annotations[v1beta1.AnnotationSidecarSetHashWithoutImage]
	if k.judgedFor != marks || k.judgedFor == "" {
		k.obstacles, k.refused, k.judgedFor = s.target.Obstacles(pod), nil, marks
	}
	if injected := annotation.Of(pod, s.object.Name); injected != nil {
		k.revision = injected.ControllerRevision
	}
	verdict := s.target.Judge(pod, append(slices.Clone(k.obstacles), k.refused...), now)
	seen, again := budget.ObserveBeside(s.object.Name, pod, requests, 0, now)
	s.fleet.Set(verdict.Pod(pod, &seen, k.retryAt))
	delete(s.due, key)
	if again = rollout.Earliest(verdict.Again, again); !again.IsZero() {
		s.due[key] = again
	}
	delete(s.unfinished, key)
	if verdict.Continue && !now.Before(k.retryAt) {
		s.unfinished[key] = true
	} else if verdict.Continue {
		s.due[key] = rollout.Earliest(k.retryAt, s.due[key])
	}
	delete(s.conditions, key)
	if condition := upgrade.Condition(pod, s.object.Name, verdict.State != rollout.NotUpgradable); condition != nil {
		s.conditions[key] = condition
	}
	delete(s.examples, key)
	if verdict.Failed || verdict.State == rollout.NotUpgradable || verdict.State == rollout.Aborted {
		s.examples[key] = verdict.Message
	}
}

// forget drops a pod. The lock is held.
func (s *set) forget(key types.NamespacedName) {
	s.fleet.Delete(key)
	delete(s.known, key)
	delete(s.notInjected, key)
	delete(s.examples, key)
	delete(s.due, key)
	delete(s.unfinished, key)
	delete(s.conditions, key)
}
