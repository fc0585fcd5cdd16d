package workload

import (
	"cmp"
	"hash/fnv"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/internal/must"
)

// Workload is the target of a policy, in one form for all kinds.
//
// It is held while its pods are updated: a Deployment is paused, a StatefulSet has a partition of at least
// [v1alpha1.HeldPartitionMin], a DaemonSet has the strategy OnDelete. If Refit holds it, it has the label
// [v1alpha1.LabelHeld]; without it, its owner holds it.
type Workload struct {
	metav1.ObjectMeta

	Kind            string
	Template        *corev1.PodTemplateSpec
	Replicas        int32 // the desired number of pods
	MinReadySeconds int32
	// Observed says that the controller of the workload has observed its present generation.
	Observed bool
	// Held says that Refit holds the workload, OwnerHolds that its owner does.
	Held, OwnerHolds bool
	// OnDelete says that the owner has chosen this strategy, also if the workload is held.
	OnDelete bool
	// Partition is the partition that the owner of a StatefulSet has set: this many of its first pods are not updated.
	Partition int32
	// firstOrdinal is the ordinal of the first pod of a StatefulSet.
	firstOrdinal int32
	// Revision names the template, and Label is the value of the label controller-revision-hash of pods with it; empty
	// for a Deployment.
	Revision, Label string
	Selector        *metav1.LabelSelector
	// ReplicaSets are the ReplicaSets of a Deployment.
	ReplicaSets []*appsv1.ReplicaSet
	// revisions are the templates of a StatefulSet or DaemonSet, by the value of the label controller-revision-hash.
	revisions map[string]*corev1.PodTemplateSpec
	// names are the names of these ControllerRevisions.
	names map[string]string
	// current are the ReplicaSets of a Deployment that have the present template.
	current map[types.UID]bool
	// historyLimit is the revisionHistoryLimit of a Deployment.
	historyLimit int32
}

// FromDeployment returns a Deployment with its ReplicaSets as a Workload. Like the functions for the other kinds, it returns
// [foreign.ErrUnreadable] if a template is out of bounds: it must not be compared.
func FromDeployment(d *appsv1.Deployment, replicaSets []*appsv1.ReplicaSet) (*Workload, error) {
	if err := CheckTemplate(d.Name, &d.Spec.Template); err != nil {
		return nil, err
	}
	w := &Workload{
		ObjectMeta: d.ObjectMeta, Kind: "Deployment", Template: &d.Spec.Template, Selector: d.Spec.Selector, Replicas: ptr.Deref(d.Spec.Replicas, 1),
		MinReadySeconds: d.Spec.MinReadySeconds, Observed: d.Status.ObservedGeneration >= d.Generation,
		Revision: templateHash(&d.Spec.Template), historyLimit: ptr.Deref(d.Spec.RevisionHistoryLimit, 10),
	}
	w.hold(d.Spec.Paused)
	for _, r := range replicaSets {
		if !metav1.IsControlledBy(r, d) || r.DeletionTimestamp != nil {
			continue
		}
		if err := CheckTemplate(r.Name, &r.Spec.Template); err != nil {
			return nil, err
		}
		w.ReplicaSets = append(w.ReplicaSets, r)
	}
	slices.SortFunc(w.ReplicaSets, func(a, b *appsv1.ReplicaSet) int { return cmp.Compare(revisionOf(a), revisionOf(b)) })
	w.current = w.withTemplate(w.Template)
	return w, nil
}

// FromStatefulSet returns a StatefulSet with its ControllerRevisions as a Workload.
func FromStatefulSet(s *appsv1.StatefulSet, revisions []*appsv1.ControllerRevision) (*Workload, error) {
	if err := CheckTemplate(s.Name, &s.Spec.Template); err != nil {
		return nil, err
	}
	w := &Workload{
		ObjectMeta: s.ObjectMeta, Kind: "StatefulSet", Template: &s.Spec.Template, Selector: s.Spec.Selector, Replicas: ptr.Deref(s.Spec.Replicas, 1),
		MinReadySeconds: s.Spec.MinReadySeconds, Observed: s.Status.ObservedGeneration >= s.Generation,
		Revision: s.Status.UpdateRevision, Label: s.Status.UpdateRevision,
	}
	strategy := s.Spec.UpdateStrategy
	if rolling := strategy.RollingUpdate; rolling != nil && rolling.Partition != nil {
		w.Partition = *rolling.Partition
	}
	held := w.Partition >= v1alpha1.HeldPartitionMin
	if held {
		w.Partition = v1alpha1.HeldPartition - w.Partition
	}
	if s.Spec.Ordinals != nil {
		w.firstOrdinal = s.Spec.Ordinals.Start
	}
	w.OnDelete = strategy.Type == appsv1.OnDeleteStatefulSetStrategyType
	w.hold(held || w.OnDelete)
	return w, w.readRevisions(s, revisions, func(r *appsv1.ControllerRevision) string { return r.Name })
}

// FromDaemonSet returns a DaemonSet with its ControllerRevisions as a Workload.
func FromDaemonSet(d *appsv1.DaemonSet, revisions []*appsv1.ControllerRevision) (*Workload, error) {
	if err := CheckTemplate(d.Name, &d.Spec.Template); err != nil {
		return nil, err
	}
	w := &Workload{
		ObjectMeta: d.ObjectMeta, Kind: "DaemonSet", Template: &d.Spec.Template, Selector: d.Spec.Selector, Replicas: d.Status.DesiredNumberScheduled,
		MinReadySeconds: d.Spec.MinReadySeconds, Observed: d.Status.ObservedGeneration >= d.Generation,
	}
	held := d.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType
	w.OnDelete = held && d.Spec.UpdateStrategy.RollingUpdate == nil // a held one keeps what its owner has set
	w.hold(held)
	hash := func(r *appsv1.ControllerRevision) string { return r.Labels[appsv1.ControllerRevisionHashLabelKey] }
	if err := w.readRevisions(d, revisions, hash); err != nil {
		return nil, err
	}
	var newest *appsv1.ControllerRevision
	for _, r := range revisions {
		if t := w.revisions[hash(r)]; t != nil && sameTemplate(t, w.Template) && (newest == nil || newest.Revision < r.Revision) {
			newest = r
		}
	}
	if newest == nil { // the controller has not created it yet
		w.Observed = false
		return w, nil
	}
	w.Revision, w.Label = newest.Name, hash(newest)
	return w, nil
}

// hold sets who holds the workload.
func (w *Workload) hold(held bool) {
	ours := w.Labels[v1alpha1.LabelHeld] == "true"
	w.Held, w.OwnerHolds = held && ours, held && !ours
}

// readRevisions reads the templates of ControllerRevisions.
func (w *Workload) readRevisions(owner metav1.Object, revisions []*appsv1.ControllerRevision, label func(*appsv1.ControllerRevision) string) error {
	w.revisions, w.names = map[string]*corev1.PodTemplateSpec{}, map[string]string{}
	for _, r := range revisions {
		if !metav1.IsControlledBy(r, owner) {
			continue
		}
		template, err := RevisionTemplate(r)
		if err != nil {
			return err
		}
		w.revisions[label(r)], w.names[label(r)] = template, r.Name
	}
	return nil
}

// excludes reports whether the partition that the owner of a StatefulSet has set excludes a pod from updates. It counts from the first
// ordinal; the StatefulSet's controller deletes pods below that.
func (w *Workload) excludes(pod *corev1.Pod) bool {
	return w.Kind == "StatefulSet" && max(ordinal(pod.Name)-w.firstOrdinal, 0) < w.Partition
}

// former returns the templates that pods may have and that differ from the present one. Pods that the partition excludes keep theirs.
func (w *Workload) former(pods []*corev1.Pod) []*corev1.PodTemplateSpec {
	var templates []*corev1.PodTemplateSpec
	add := func(t *corev1.PodTemplateSpec) {
		if t != nil && !sameTemplate(t, w.Template) {
			templates = append(templates, t)
		}
	}
	if w.Kind == "Deployment" {
		active := w.active()
		for _, r := range w.ReplicaSets { // several have pods in the middle of a rollout of the Deployment's controller
			if r == active || hasPods(r) {
				add(&r.Spec.Template)
			}
		}
		return templates
	}
	seen := map[string]bool{}
	for _, pod := range pods {
		if label := pod.Labels[appsv1.ControllerRevisionHashLabelKey]; !seen[label] && !w.excludes(pod) {
			seen[label] = true
			add(w.revisions[label])
		}
	}
	return templates
}

// at returns the workload with the template of an earlier revision; nil if it is not known any more.
func (w *Workload) at(revision string) *Workload {
	former := *w
	if active := w.active(); w.Kind == "Deployment" && active != nil && templateHash(&active.Spec.Template) == revision {
		former.Template, former.Revision = withoutHash(&active.Spec.Template), revision
		former.current = w.withTemplate(former.Template)
		return &former
	}
	for label, name := range w.names {
		if name == revision {
			former.Template, former.Revision, former.Label = w.revisions[label], name, label
			return &former
		}
	}
	return nil
}

// created reports whether a pod was created from the present template, or has the label of its revision.
func (w *Workload) created(pod *corev1.Pod) bool {
	if w.Kind != "Deployment" {
		return pod.Labels[appsv1.ControllerRevisionHashLabelKey] == w.Label
	}
	owner := metav1.GetControllerOfNoCopy(pod)
	return owner != nil && w.current[owner.UID]
}

// withTemplate returns the ReplicaSets that have a template.
func (w *Workload) withTemplate(t *corev1.PodTemplateSpec) map[types.UID]bool {
	with := map[types.UID]bool{}
	for _, r := range w.ReplicaSets {
		if sameTemplate(&r.Spec.Template, t) {
			with[r.UID] = true
		}
	}
	return with
}

// active returns the ReplicaSet of a Deployment that has the pods, or would get them; nil if there is none.
func (w *Workload) active() *appsv1.ReplicaSet {
	var newest *appsv1.ReplicaSet
	for _, r := range w.ReplicaSets { // by revision
		if newest == nil || hasPods(r) || !hasPods(newest) {
			newest = r
		}
	}
	return newest
}

// ownRollout says that pods are replaced, see mixed.
const ownRollout = "the controller of the Deployment is in the middle of a rollout of its own"

// mixed reports whether more than one ReplicaSet has pods: the Deployment is in the middle of a rollout of its own.
func (w *Workload) mixed() bool {
	n := 0
	for _, r := range w.ReplicaSets {
		if hasPods(r) {
			n++
		}
	}
	return n > 1
}

func hasPods(r *appsv1.ReplicaSet) bool {
	return ptr.Deref(r.Spec.Replicas, 1) > 0 || r.Status.Replicas > 0
}

// revisionOf returns the revision of a ReplicaSet, as the Deployment's controller counts them.
func revisionOf(r *appsv1.ReplicaSet) int64 {
	n, _ := strconv.ParseInt(r.Annotations[AnnotationRevision], 10, 64) // 0 for a ReplicaSet without one
	return n
}

// Annotations of ReplicaSets that kubectl rollout history shows (pkg/controller/deployment/util/deployment_util.go and
// k8s.io/kubectl/pkg/polymorphichelpers/history.go).
const (
	AnnotationRevision    = "deployment.kubernetes.io/revision"
	AnnotationChangeCause = "kubernetes.io/change-cause"
)

// sameTemplate compares templates as the Deployment's controller does: without pod-template-hash.
func sameTemplate(a, b *corev1.PodTemplateSpec) bool {
	return apiequality.Semantic.DeepEqual(withoutHash(a), withoutHash(b))
}

func withoutHash(t *corev1.PodTemplateSpec) *corev1.PodTemplateSpec {
	t = t.DeepCopy()
	delete(t.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
	return t
}

// templateHash names a template of a Deployment. Only Refit compares it.
func templateHash(t *corev1.PodTemplateSpec) string {
	hash := fnv.New64a()
	hash.Write(must.JSON(withoutHash(t)))
	return strconv.FormatUint(hash.Sum64(), 36)
}
