package workload_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/kubelet"
	"github.com/refit-project/refit/rollout/workload"
)

// world is a workload with its pods, its controller, the kubelet, and the API server's hold.
type world struct {
	t           *testing.T
	now         time.Time
	policy      *v1alpha1.InPlaceUpdatePolicy
	deployment  *appsv1.Deployment
	replicaSets []*appsv1.ReplicaSet
	statefulSet *appsv1.StatefulSet
	daemonSet   *appsv1.DaemonSet
	revisions   []*appsv1.ControllerRevision
	pods        map[string]*corev1.Pod
	bad         map[string]bool // images that crash
	slow        map[string]bool // pods whose containers run and are not ready
	restarts    map[string]int  // by pod
	created     int             // pods, by controllers
	worst       int             // the largest number of pods that were unavailable at a time
	version     int
	writes      int // of Refit
	dieAt       int // the process dies instead of this write
	last        workload.Decision
	registry    registry
	requests    []*v1beta1.ContainerRecreateRequest
	tracks      map[string]string // the label track when a container was started, by its ID
	kept        remembered
	oneAtATime  bool // controllers replace pods one at a time, else all at once
	// pending is why kubelet does not carry out a resize to more than a node has; refused says that the API server refuses resizes.
	pending string
	refused bool
	since   time.Time       // the start of the manager
	down    map[string]bool // pods whose nodes are down
}

func template(image string) corev1.PodTemplateSpec {
	t := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}}}
	t.Spec.RestartPolicy = corev1.RestartPolicyAlways
	t.Spec.Containers = []corev1.Container{{Name: "app", Image: image}, {Name: "log", Image: "log:1"}}
	return t
}

func newWorld(t *testing.T, kind string, pods int32) *world {
	t.Helper()
	w := &world{t: t, now: time.Unix(1_700_000_000, 0), pods: map[string]*corev1.Pod{}, bad: map[string]bool{}, slow: map[string]bool{}, restarts: map[string]int{}, tracks: map[string]string{}}
	w.policy = &v1alpha1.InPlaceUpdatePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Generation: 1}}
	w.policy.Spec.TargetRef = v1alpha1.WorkloadReference{APIVersion: "apps/v1", Kind: kind, Name: "web"}
	meta := metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "workload", Generation: 1, Labels: map[string]string{}}
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	switch kind {
	case "Deployment":
		w.deployment = &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Replicas: &pods, Selector: selector, Template: template("app:1")}}
	case "StatefulSet":
		w.statefulSet = &appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Replicas: &pods, Selector: selector, Template: template("app:1")}}
		w.statefulSet.Spec.UpdateStrategy = appsv1.StatefulSetUpdateStrategy{
			Type: appsv1.RollingUpdateStatefulSetStrategyType, RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{Partition: new(int32(0))},
		}
	case "DaemonSet":
		w.daemonSet = &appsv1.DaemonSet{ObjectMeta: meta, Spec: appsv1.DaemonSetSpec{Selector: selector, Template: template("app:1")}}
		w.daemonSet.Spec.UpdateStrategy = appsv1.DaemonSetUpdateStrategy{
			Type: appsv1.RollingUpdateDaemonSetStrategyType, RollingUpdate: &appsv1.RollingUpdateDaemonSet{},
		}
		w.daemonSet.Status.DesiredNumberScheduled = pods
	}
	w.rounds(3)
	w.created, w.worst, w.writes, w.restarts = 0, 0, 0, map[string]int{}
	return w
}

func (w *world) template() *corev1.PodTemplateSpec {
	switch {
	case w.deployment != nil:
		return &w.deployment.Spec.Template
	case w.statefulSet != nil:
		return &w.statefulSet.Spec.Template
	}
	return &w.daemonSet.Spec.Template
}

func (w *world) meta() *metav1.ObjectMeta {
	switch {
	case w.deployment != nil:
		return &w.deployment.ObjectMeta
	case w.statefulSet != nil:
		return &w.statefulSet.ObjectMeta
	}
	return &w.daemonSet.ObjectMeta
}

// edit changes the template as a user does; the API server, or the owner, holds the workload in the same write.
func (w *world) edit(change func(*corev1.PodTemplateSpec)) {
	change(w.template())
	w.meta().Generation++
	if w.policy.Spec.HoldPolicy != v1alpha1.HoldByOwner {
		w.meta().Labels[v1alpha1.LabelHeld] = "true"
	}
	switch {
	case w.deployment != nil:
		w.deployment.Spec.Paused = true
	case w.statefulSet != nil:
		if p := w.statefulSet.Spec.UpdateStrategy.RollingUpdate.Partition; *p < v1alpha1.HeldPartitionMin {
			*p = v1alpha1.HeldPartition - *p
		}
	default:
		w.daemonSet.Spec.UpdateStrategy.Type = appsv1.OnDeleteDaemonSetStrategyType
	}
}

func image(image string) func(*corev1.PodTemplateSpec) {
	return func(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].Image = image }
}

func (w *world) target() *workload.Workload {
	w.t.Helper()
	var target *workload.Workload
	var err error
	switch {
	case w.deployment != nil:
		target, err = workload.FromDeployment(w.deployment, w.replicaSets)
	case w.statefulSet != nil:
		target, err = workload.FromStatefulSet(w.statefulSet, w.revisions)
	default:
		target, err = workload.FromDaemonSet(w.daemonSet, w.revisions)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return target
}

// look calls Next, and carries out what it decides. After some actions the process may die: cut is how many are carried out.
func (w *world) look(cut int) {
	w.t.Helper()
	pods := slices.Collect(maps.Values(w.pods))
	w.last = w.next(workload.Observation{Workload: w.target(), Pods: pods, Requests: w.requests, Pulls: w.registry.pulls(), Since: w.since})
	if !apiequality.Semantic.DeepEqual(w.policy.Status, w.last.Status) && w.dies() {
		return
	}
	w.policy.Status = w.last.Status
	for i, action := range w.last.Actions {
		if i == cut || w.dies() {
			return
		}
		w.act(&action)
	}
}

func (w *world) act(a *workload.Action) {
	w.t.Helper()
	switch a.Kind {
	case workload.ActionUpdate:
		w.begin(a.Pod)
	case workload.ActionContinue:
		w.proceed(a.Pod)
	case workload.ActionPull:
		w.registry.add(a.Job, w.now)
	case workload.ActionWithdraw:
		w.withdraw(a.Pod)
	case workload.ActionLabel:
		w.pods[a.Pod.Name].Labels[appsv1.ControllerRevisionHashLabelKey] = a.Label
	case workload.ActionEvict:
		delete(w.pods, a.Pod.Name)
	case workload.ActionKeepHistory, workload.ActionSetTemplate:
		w.write(a.ReplicaSet)
	case workload.ActionUndo:
		w.edit(func(t *corev1.PodTemplateSpec) { *t = *a.Template.DeepCopy() })
	case workload.ActionRelease:
		w.release()
	case workload.ActionHoldLabel:
		if a.Label == "" {
			delete(w.meta().Labels, v1alpha1.LabelHoldUID)
		} else {
			w.meta().Labels[v1alpha1.LabelHoldUID] = a.Label
		}
	}
}

func (w *world) write(r *workload.ReplicaSet) {
	for _, known := range w.replicaSets {
		if known.Name == r.Name {
			if r.UID == "" {
				return // the API server has one of this name
			}
			known.Spec.Template = *r.Template.DeepCopy()
			known.Generation++
			if r.Revision != "" {
				known.Annotations["deployment.kubernetes.io/revision"] = r.Revision
			}
			return
		}
	}
	w.addReplicaSet(r.Name, r.Template, 0, r.Revision)
}

func (w *world) addReplicaSet(name string, t *corev1.PodTemplateSpec, replicas int32, revision string) *appsv1.ReplicaSet {
	made := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: name, UID: types.UID(name), Generation: 1, CreationTimestamp: metav1.NewTime(w.now),
		Annotations:     map[string]string{"deployment.kubernetes.io/revision": revision},
		OwnerReferences: []metav1.OwnerReference{{Kind: "Deployment", Name: "web", UID: "workload", Controller: new(true)}},
	}}
	made.Spec = appsv1.ReplicaSetSpec{Replicas: &replicas, Template: *t.DeepCopy()}
	made.Spec.Template.Labels[appsv1.DefaultDeploymentUniqueLabelKey] = name
	w.replicaSets = append(w.replicaSets, made)
	return made
}

func (w *world) release() {
	delete(w.meta().Labels, v1alpha1.LabelHeld)
	w.meta().Generation++
	switch {
	case w.deployment != nil:
		w.deployment.Spec.Paused = false
	case w.statefulSet != nil:
		p := w.statefulSet.Spec.UpdateStrategy.RollingUpdate.Partition
		*p = v1alpha1.HeldPartition - *p
	default:
		w.daemonSet.Spec.UpdateStrategy.Type = appsv1.RollingUpdateDaemonSetStrategyType
	}
}

// rounds lets controller, kubelet and Refit act in turn.
func (w *world) rounds(n int) {
	w.t.Helper()
	for range n {
		w.controller()
		w.kubelet()
		w.registry.work(w.now)
		w.look(-1)
		w.now = w.now.Add(time.Second)
	}
}

func (w *world) progressing() string {
	for _, c := range w.policy.Status.Conditions {
		if c.Type == v1alpha1.ConditionProgressing {
			return fmt.Sprintf("%s %s", c.Status, c.Reason)
		}
	}
	return ""
}

func (w *world) images() map[string]int {
	images := map[string]int{}
	for _, pod := range w.pods {
		images[pod.Spec.Containers[0].Image]++
	}
	return images
}

// unavailable returns how many pods are not ready.
func (w *world) unavailable() (n int) {
	for _, pod := range w.pods {
		if !kubelet.Ready(pod) {
			n++
		}
	}
	return n
}

func raw(t *corev1.PodTemplateSpec) runtime.RawExtension {
	text, _ := json.Marshal(map[string]any{"spec": map[string]any{"template": t}})
	return runtime.RawExtension{Raw: text}
}
