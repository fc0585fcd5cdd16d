package availabilitycheck

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	refitv1alpha1 "github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/test/chaos/history/entry"
	"github.com/refit-project/refit/test/chaos/history/model"
)

// moment is a place in the order in which etcd has stored objects. What has no revision is ordered by its time.
type moment struct {
	revision int64
	at       time.Time
}

func (m moment) before(other moment) bool {
	if m.revision > 0 && other.revision > 0 {
		return m.revision < other.revision
	}
	return m.at.Before(other.at)
}

func podMoment(w entry.Write) moment {
	return moment{entry.Revision(w.Pod.ResourceVersion), w.Received}
}

func requestMoment(w entry.Write) moment {
	return moment{entry.Revision(w.Request.ResourceVersion), w.Received}
}

// workload is one of the run, which the record of the watches names.
type workload struct {
	namespace, name string
	selector        labels.Selector
	scales          []scale
	pods            []*pod
	takes           []*take // in the order of their begins
}

func (w *workload) String() string { return w.namespace + "/" + w.name }

// scale is how many pods the workload is to have from a moment on.
type scale struct {
	from     moment
	replicas int
}

// replicas is how many pods the workload was to have at any time since then, at least.
func (w *workload) replicas(since time.Time, until moment) int {
	now, least := 0, -1
	for _, s := range w.scales {
		if !s.from.before(until) {
			break
		}
		now = s.replicas
		if s.from.at.Before(since) {
			least = now
		}
		least = min(least, now)
	}
	return max(least, 0)
}

// policyOf is the InPlaceUpdatePolicy of a workload, as it was at that moment; nil if there was none.
func (c *check) policyOf(w *workload, m moment) *refitv1alpha1.InPlaceUpdatePolicy {
	var found *refitv1alpha1.InPlaceUpdatePolicy
	for i := range c.Writes {
		p := c.Writes[i].Policy
		if p == nil || p.Namespace != w.namespace || p.Spec.TargetRef.Name != w.name || !(moment{entry.Revision(p.ResourceVersion), c.Writes[i].Received}).before(m) {
			continue
		}
		if found == nil || entry.Revision(found.ResourceVersion) < entry.Revision(p.ResourceVersion) {
			found = p
		}
	}
	return found
}

// pod is a pod with all of its versions that are known, in the order in which they were stored.
type pod struct {
	*model.Pod
	versions []entry.Write
	gone     moment // zero while it is there
}

// workloads are the workloads of the run, with their pods.
func (c *check) workloads() []*workload {
	byName := map[[2]string]*workload{}
	var all []*workload
	for _, w := range c.Watched {
		if w.Workload == nil {
			continue
		}
		object := w.Workload
		key := [2]string{object.Namespace, object.Name}
		found := byName[key]
		if found == nil {
			selector, err := metav1.LabelSelectorAsSelector(object.Spec.Selector)
			if err != nil {
				continue // the API server refuses it
			}
			found = &workload{namespace: object.Namespace, name: object.Name, selector: selector}
			byName[key] = found
			all = append(all, found)
		}
		s := scale{from: moment{entry.Revision(object.ResourceVersion), w.At}}
		if w.Event != entry.WatchDeleted && object.DeletionTimestamp == nil {
			s.replicas = 1
			if object.Spec.Replicas != nil {
				s.replicas = int(*object.Spec.Replicas)
			}
		}
		found.scales = append(found.scales, s)
	}
	pods := c.pods()
	for _, w := range all {
		for _, p := range pods {
			if p.Namespace == w.namespace && w.selector.Matches(labels.Set(p.versions[0].Pod.Labels)) {
				w.pods = append(w.pods, p)
			}
		}
	}
	return all
}

// pods are all pods, in the order of their creation.
func (c *check) pods() []*pod {
	byUID := map[string]*pod{}
	for _, w := range c.Writes {
		if w.Pod == nil {
			continue
		}
		uid := string(w.Pod.UID)
		if byUID[uid] == nil {
			byUID[uid] = &pod{Pod: c.Pods[uid]}
		}
		byUID[uid].versions = append(byUID[uid].versions, w)
	}
	var all []*pod
	for _, p := range byUID {
		slices.SortStableFunc(p.versions, func(a, b entry.Write) int {
			return cmp.Compare(entry.Revision(a.Pod.ResourceVersion), entry.Revision(b.Pod.ResourceVersion))
		})
		for _, w := range p.versions {
			if w.Verb == "delete" && (w.Pod.DeletionGracePeriodSeconds == nil || *w.Pod.DeletionGracePeriodSeconds == 0) {
				p.gone = podMoment(w)
			}
		}
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b *pod) int {
		return cmp.Compare(entry.Revision(a.versions[0].Pod.ResourceVersion), entry.Revision(b.versions[0].Pod.ResourceVersion))
	})
	return all
}

// version is the newest one before a moment, or nil if there was none.
func (p *pod) version(m moment) *entry.Write {
	var newest *entry.Write
	for i := range p.versions {
		if !podMoment(p.versions[i]).before(m) {
			break
		}
		newest = &p.versions[i]
	}
	return newest
}

// present reports whether the pod was there at that moment, and not being deleted.
func (p *pod) present(m moment) bool {
	w := p.version(m)
	if w == nil || p.gone != (moment{}) && p.gone.before(m) {
		return false
	}
	return w.Pod.DeletionTimestamp == nil && (p.Deleted == nil || !p.Deleted.Received.Before(m.at))
}

// serves reports whether the pod was ready during all of the time before the moment, and whether it was not at any time of it.
// If neither is true, who looked may have seen the one or the other.
func (p *pod) serves(since time.Time, until moment) (always, never bool) {
	if !p.present(until) {
		return false, true
	}
	begin := ready(p.version(moment{at: since}))
	always, never = begin, !begin
	for i := range p.versions {
		w := &p.versions[i]
		if w.Received.Before(since) || !podMoment(*w).before(until) {
			continue
		}
		always, never = always && ready(w), never && !ready(w) && !unreadySince(w.Pod).After(since)
	}
	return always, never
}

// doubtful reports whether versions of the pod before that moment may be missing.
func (p *pod) doubtful(m moment) bool {
	last := p.version(m)
	return last == nil || slices.ContainsFunc(p.Unsure, func(w entry.Write) bool {
		return !w.Done.Before(last.Received) && w.Received.Before(m.at)
	})
}

func ready(w *entry.Write) bool {
	return w != nil && w.Pod.DeletionTimestamp == nil && condition(w.Pod, corev1.PodReady) == corev1.ConditionTrue
}

func condition(p *corev1.Pod, name corev1.PodConditionType) corev1.ConditionStatus {
	for _, c := range p.Status.Conditions {
		if c.Type == name {
			return c.Status
		}
	}
	return corev1.ConditionUnknown
}

func statusOf(p *corev1.Pod, container string) *corev1.ContainerStatus {
	for _, list := range [][]corev1.ContainerStatus{p.Status.ContainerStatuses, p.Status.InitContainerStatuses} {
		for i := range list {
			if list[i].Name == container {
				return &list[i]
			}
		}
	}
	return nil
}

// longUnready is for how long a pod must not have been ready to be one that does not come back by itself.
const longUnready = 10 * time.Minute

// lost reports whether the pod cannot come back by itself: a container of it waits for what does not come, or has ended for good, or it
// has not been ready for longer than longUnready.
func (p *pod) lost(m moment) bool {
	w := p.version(m)
	if w == nil {
		return false
	}
	waits := slices.ContainsFunc(slices.Concat(w.Pod.Status.InitContainerStatuses, w.Pod.Status.ContainerStatuses), func(s corev1.ContainerStatus) bool {
		return s.State.Waiting != nil && slices.Contains(waitsInVain, s.State.Waiting.Reason) ||
			s.State.Terminated != nil && w.Pod.Spec.RestartPolicy == corev1.RestartPolicyNever
	})
	if waits {
		return true
	}
	for _, c := range w.Pod.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status != corev1.ConditionTrue {
			return !c.LastTransitionTime.IsZero() && m.at.Sub(c.LastTransitionTime.Time) > longUnready
		}
	}
	return false
}

// waitsInVain are the reasons of kubelet for which a container waits for what does not come by itself.
var waitsInVain = []string{
	"CrashLoopBackOff", "ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError",
	"RegistryUnavailable", "CreateContainerError", "CreateContainerConfigError", "RunContainerError",
}
