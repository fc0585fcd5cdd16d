package workload_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-project/refit/api/refit/v1alpha1"
)

// controller does what the controller of the workload does (pkg/controller/deployment, statefulset, daemon), as far as it
// matters for held workloads: replaced pods count, and nothing of Refit may cause one.
func (w *world) controller() {
	switch {
	case w.deployment != nil:
		w.deploymentController()
	case w.statefulSet != nil:
		w.revisionController(w.statefulSet.Spec.UpdateStrategy.RollingUpdate.Partition)
	default:
		w.revisionController(nil)
	}
}

func same(a, b *corev1.PodTemplateSpec) bool {
	a, b = a.DeepCopy(), b.DeepCopy()
	delete(a.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
	delete(b.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
	return apiequality.Semantic.DeepEqual(a, b)
}

// deploymentController takes the oldest ReplicaSet with the template, or makes one unless the Deployment is paused, and
// moves all pods to it.
func (w *world) deploymentController() {
	d := w.deployment
	d.Status.ObservedGeneration = d.Generation
	var newest *appsv1.ReplicaSet
	for _, r := range w.replicaSets {
		r.Status.ObservedGeneration = r.Generation
		if newest == nil && same(&r.Spec.Template, &d.Spec.Template) {
			newest = r
		}
	}
	if !d.Spec.Paused {
		if newest == nil {
			newest = w.addReplicaSet(fmt.Sprintf("web-%d", len(w.replicaSets)), &d.Spec.Template, 0, fmt.Sprint(len(w.replicaSets)+1))
		}
		w.scale(newest, *d.Spec.Replicas)
	} else if active := w.active(); active != nil {
		*active.Spec.Replicas = *d.Spec.Replicas
	}
	if newest != nil { // also while the Deployment is paused
		w.newestRevision(newest)
	}
	for _, r := range w.replicaSets {
		var own []string
		for name, pod := range w.pods {
			if pod.OwnerReferences[0].UID == r.UID {
				own = append(own, name)
			}
		}
		slices.Sort(own)
		for i := len(own); i < int(*r.Spec.Replicas); i++ {
			w.create(fmt.Sprintf("%s-%d", r.Name, w.version), r.UID, &r.Spec.Template, "")
		}
		for i := int(*r.Spec.Replicas); i < len(own); i++ {
			delete(w.pods, own[i])
		}
		r.Status.Replicas = *r.Spec.Replicas
	}
}

// scale moves the pods of a Deployment to its newest ReplicaSet, all at once unless they are replaced one at a time.
func (w *world) scale(newest *appsv1.ReplicaSet, replicas int32) {
	others := int32(0)
	for _, r := range w.replicaSets {
		switch {
		case r == newest:
		case w.oneAtATime && *r.Spec.Replicas > 0 && others == 0:
			*r.Spec.Replicas--
			others = *r.Spec.Replicas
		case w.oneAtATime:
			others += *r.Spec.Replicas
		default:
			*r.Spec.Replicas = 0
		}
	}
	*newest.Spec.Replicas = replicas - others
}

// newestRevision gives a ReplicaSet the highest revision (SetNewReplicaSetAnnotations).
func (w *world) newestRevision(newest *appsv1.ReplicaSet) {
	const key = "deployment.kubernetes.io/revision"
	highest := 0
	for _, r := range w.replicaSets {
		if n, _ := strconv.Atoi(r.Annotations[key]); r != newest {
			highest = max(highest, n)
		}
	}
	if n, _ := strconv.Atoi(newest.Annotations[key]); n <= highest {
		newest.Annotations[key] = strconv.Itoa(highest + 1)
	}
}

func (w *world) active() *appsv1.ReplicaSet {
	for _, r := range w.replicaSets {
		if *r.Spec.Replicas > 0 {
			return r
		}
	}
	return nil
}

// revisionController keeps ControllerRevisions, and replaces pods without the label of the newest one unless it is held.
func (w *world) revisionController(partition *int32) {
	t := w.template()
	current := ""
	for _, r := range w.revisions {
		if string(r.Data.Raw) == string(raw(t).Raw) {
			current = r.Name
		}
	}
	if current == "" {
		current = fmt.Sprintf("web-r%d", len(w.revisions)+1)
		w.revisions = append(w.revisions, &appsv1.ControllerRevision{
			ObjectMeta: metav1.ObjectMeta{
				Name: current, Labels: map[string]string{appsv1.ControllerRevisionHashLabelKey: current},
				OwnerReferences: []metav1.OwnerReference{{UID: "workload", Controller: new(true)}},
			},
			Revision: int64(len(w.revisions) + 1), Data: raw(t),
		})
	}
	held := false
	var replicas, first int32
	if w.statefulSet != nil {
		s := w.statefulSet
		if s.Spec.Ordinals != nil {
			first = s.Spec.Ordinals.Start
		}
		s.Status.ObservedGeneration, s.Status.UpdateRevision = s.Generation, current
		replicas, held = *s.Spec.Replicas, *partition >= v1alpha1.HeldPartitionMin
	} else {
		d := w.daemonSet
		d.Status.ObservedGeneration = d.Generation
		replicas, held = d.Status.DesiredNumberScheduled, d.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType
	}
	for i := replicas - 1; i >= 0; i-- {
		name := fmt.Sprintf("web-%d", first+i)
		if pod := w.pods[name]; pod != nil && !held && pod.Labels[appsv1.ControllerRevisionHashLabelKey] != current && (partition == nil || i >= *partition) {
			delete(w.pods, name)
			held = w.oneAtATime
		}
		if w.pods[name] == nil {
			w.create(name, "workload", t, current)
		}
	}
}

func (w *world) create(name string, owner types.UID, t *corev1.PodTemplateSpec, revision string) {
	w.created++
	w.version++
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: name, UID: types.UID(fmt.Sprintf("%s-%d", name, w.created)), ResourceVersion: fmt.Sprint(w.version), Generation: 1,
		Labels: maps.Clone(t.Labels), CreationTimestamp: metav1.NewTime(w.now), OwnerReferences: []metav1.OwnerReference{{UID: owner, Controller: new(true)}},
	}}
	if revision != "" {
		pod.Labels[appsv1.ControllerRevisionHashLabelKey] = revision
	}
	t.Spec.DeepCopyInto(&pod.Spec)
	pod.Spec.NodeName = "node-" + name
	for _, gate := range t.Spec.ReadinessGates {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: gate.ConditionType, Status: corev1.ConditionTrue})
	}
	w.pods[name] = pod
}

// kubelet starts containers whose image has changed. A new instance is ready a round later, unless its image crashes.
func (w *world) kubelet() {
	for _, pod := range w.pods {
		if w.down[pod.Name] {
			continue
		}
		if pod.Status.ObservedGeneration != 0 {
			pod.Status.ObservedGeneration = pod.Generation
		}
		ready := true
		for i := range pod.Spec.Containers {
			ready = w.container(pod, &pod.Spec.Containers[i]) && ready
		}
		w.condition(pod, ready)
	}
	w.worst = max(w.worst, w.unavailable())
}

func (w *world) container(pod *corev1.Pod, c *corev1.Container) (ready bool) {
	var status *corev1.ContainerStatus
	for i := range pod.Status.ContainerStatuses {
		if s := &pod.Status.ContainerStatuses[i]; s.Name == c.Name {
			status = s
		}
	}
	if status == nil {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{Name: c.Name})
		status = &pod.Status.ContainerStatuses[len(pod.Status.ContainerStatuses)-1]
	}
	crashes := w.bad[c.Image]
	if status.Image != c.Image {
		status.Image, status.ImageID = c.Image, "id of "+c.Image
		w.start(pod, status)
		return false
	}
	if crashes {
		status.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off"}}
	}
	status.Ready = !crashes && !w.slow[pod.Name]
	return status.Ready
}

// condition sets Ready, which also needs the readiness gates.
func (w *world) condition(pod *corev1.Pod, ready bool) {
	at := -1
	for i, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			at = i
		} else {
			ready = ready && c.Status == corev1.ConditionTrue
		}
	}
	now := corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(w.now)}
	if ready {
		now.Status = corev1.ConditionTrue
	}
	switch {
	case at < 0:
		pod.Status.Conditions = append(pod.Status.Conditions, now)
	case pod.Status.Conditions[at].Status != now.Status:
		pod.Status.Conditions[at] = now
	}
}
