package control

import (
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/cache"
	"github.com/refit-project/refit/rollout/budget"
	"github.com/refit-project/refit/sidecarset/annotation"
	"github.com/refit-project/refit/sidecarset/choice"
	"github.com/refit-project/refit/sidecarset/control/report"
	"github.com/refit-project/refit/sidecarset/match"
	"github.com/refit-project/refit/sidecarset/missed"
	"github.com/refit-project/refit/sidecarset/rollout"
	"github.com/refit-project/refit/sidecarset/status"
	"github.com/refit-project/refit/sidecarset/upgrade"
)

// set is the state of a SidecarSet: its newest version, and what is known about its pods.
type set struct {
	object   *v1beta1.SidecarSet
	target   *upgrade.Target
	strategy rollout.Strategy
	selector match.Selector
	// Only used by the reconciler.
	complete bool        // all pods have been observed; budgets computed from some of the pods would be too large
	pulled   bool        // the images have been pulled
	reported report.Last // the last written status

	mu          sync.Mutex
	fleet       *rollout.Fleet
	known       map[types.NamespacedName]*known
	notInjected map[types.NamespacedName]missed.Pod
	repair      missed.Repair
	leaving     map[types.NamespacedName]*rollout.Leaving // pods that are being deleted because they were evicted
	ending      map[types.NamespacedName]rollout.Ending   // pods with a controller that are being deleted for other reasons
	examples    map[types.NamespacedName]string           // pods that have failed or cannot be updated, with the reasons
	due         map[types.NamespacedName]time.Time
	unfinished  map[types.NamespacedName]bool                 // pods whose update continues without being selected
	gone        map[types.UID]bool                            // pods deleted while all are read from the API server; nil at other times
	held        rollout.Hold                                  // of the last selection
	holders     string                                        // pods that hold it, of the last selection
	disruption  string                                        // PodDisruptionBudget that blocks one of its pods, as namespace/name
	conditions  map[types.NamespacedName]*corev1.PodCondition // to write
}

// known is what is known about a pod apart from what the fleet has.
type known struct {
	uid types.UID
	// version is the resource version of our last write, or of the last read from the API server. Older events are ignored.
	version string
	// revision is the ControllerRevision named in the pod's annotations.
	revision string
	// obstacles are what prevents an update, for these annotations; refused are the refusals of an attempted update.
	obstacles, refused []string
	judgedFor          string
	updated            bool // by this process; not every update is recorded in the pod
	failures           int
	retryAt            time.Time
}

// newSet compiles a SidecarSet. It returns errors about selectors, which admission refuses.
func newSet(object *v1beta1.SidecarSet, latest string, history []*appsv1.ControllerRevision) (*set, error) {
	s := &set{
		object: object, known: map[types.NamespacedName]*known{}, notInjected: map[types.NamespacedName]missed.Pod{},
		examples: map[types.NamespacedName]string{}, due: map[types.NamespacedName]time.Time{}, unfinished: map[types.NamespacedName]bool{},
		conditions: map[types.NamespacedName]*corev1.PodCondition{}, leaving: map[types.NamespacedName]*rollout.Leaving{},
		ending: map[types.NamespacedName]rollout.Ending{},
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
	// Otherwise the replacement of an evicted pod would be evicted again, and so on.
	s.strategy.Recreate = s.strategy.Recreate && choice.InjectsLatest(object, latest, history)
	s.fleet = rollout.NewFleet(s.strategy.Scatter)
	return s, nil
}

// inherit copies state from the previous version of the SidecarSet: which of our writes the cache may not have yet, and
// which pods were evicted.
func (s *set) inherit(before *set) {
	before.mu.Lock()
	defer before.mu.Unlock()
	for key, k := range before.known {
		s.known[key] = &known{uid: k.uid, version: k.version, updated: k.updated}
	}
	s.repair, s.leaving, s.ending = before.repair, maps.Clone(before.leaving), maps.Clone(before.ending)
	s.reported = before.reported.Inherit()
	s.fleet.Inherit(before.fleet)
}

// observe updates what is known about a pod. selected says that the SidecarSet selects it. why is the reason if it is
// selected and was not injected, or nil. requests are the requests that name the pod. It reports whether anything has
// changed.
func (s *set) observe(pod *corev1.Pod, selected bool, why *missed.Pod, requests []*v1beta1.ContainerRecreateRequest, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
	before, had := s.fleet.Get(key)
	was, counted := s.notInjected[key]
	if k := s.known[key]; s.gone[pod.UID] || k != nil && cache.Older(pod.ResourceVersion, k.version) {
		return false
	}
	injected := slices.Contains(annotation.Names(pod), s.object.Name)
	if !selected || !upgrade.Active(pod) || !injected {
		s.forget(key)
		if selected && (injected || why != nil) {
			s.recordDeleted(key, pod, injected)
		}
		if !selected || !upgrade.Active(pod) || why == nil {
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

// judge compares a pod with the target. The caller holds the lock.
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
	view := verdict.Pod(pod, &seen, k.retryAt)
	view.Ours = k.updated
	s.fleet.Set(view)
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
	verdict.InPlace = verdict.InPlace || k.updated
	if condition := upgrade.Condition(pod, s.object.Name, &verdict, &s.strategy); condition != nil {
		s.conditions[key] = condition
	}
	delete(s.examples, key)
	if verdict.Failed || verdict.State == rollout.NotUpgradable || verdict.State == rollout.Aborted {
		s.examples[key] = verdict.Message
	}
}

// unjudged records a pod that cannot be evaluated as neither available nor updatable. It reports whether that is new.
func (s *set) unjudged(pod *corev1.Pod, cause error, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := client.ObjectKeyFromObject(pod)
	before, _ := s.fleet.Get(key)
	k := s.known[key]
	s.forget(key)
	if s.gone[pod.UID] || pod.DeletionTimestamp == nil && (pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed) {
		return before.UID != ""
	}
	after := upgrade.Unjudged(pod, &before)
	s.fleet.Set(after)
	if s.known[key] = k; k == nil || k.uid != pod.UID {
		s.known[key] = &known{uid: pod.UID}
	}
	s.examples[key] = "not judged: " + report.Short(cause)
	s.due[key] = now.Add(lastRetry)
	return !before.Equal(&after)
}

// forget removes a pod. The caller holds the lock.
func (s *set) forget(key types.NamespacedName) {
	s.fleet.Delete(key)
	delete(s.known, key)
	delete(s.notInjected, key)
	delete(s.examples, key)
	delete(s.due, key)
	delete(s.unfinished, key)
	delete(s.conditions, key)
}
