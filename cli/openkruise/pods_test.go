package openkruise_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	refitv1alpha1 "github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/cli/openkruise"
)

// injectedPod is a pod of SidecarSet log, with nothing under way.
func injectedPod(set *v1beta1.SidecarSet, changes ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: object("web-0")}
	pod.Labels = map[string]string{"app": "web"}
	hash := set.Annotations[v1beta1.AnnotationSidecarSetHash]
	entry := func(hash string) string {
		return `{"log":{"hash":"` + hash + `","sidecarSetName":"log","controllerRevision":"log-2"}}`
	}
	pod.Annotations = map[string]string{v1beta1.AnnotationSidecarSetList: "log", v1beta1.AnnotationSidecarSetHash: entry(hash), v1beta1.AnnotationSidecarSetHashWithoutImage: entry("x")}
	pod.Spec.Containers = []corev1.Container{{Name: "agent", Image: "registry.example.com/agent:1"}, {Name: "app", Image: "app:1"}}
	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	for _, change := range changes {
		change(pod)
	}
	return pod
}

func TestPods(t *testing.T) {
	t.Parallel()
	const (
		gate     = "it is kept out of its Services by the condition KruisePodReady, until who has set it takes that back"
		own      = "an update of its containers in place is under way, and the other manager does not go on with it"
		sidecars = "a SidecarSet updates its containers in place"
		system   = "it has sidecars; Refit injects nothing into pods of namespace kube-system"
		plane    = "its namespace has the label control-plane, so OpenKruise injects nothing; Refit does, into the pods that come after it"
		planed   = "its namespace has the label control-plane, so OpenKruise injects nothing into the pods that come after it"
		excluded = "Refit injects nothing into pods of its namespace; OpenKruise does, into the pods that come after it"
		hash     = "it has the newest revision of SidecarSet log, with a hash of an earlier version of Refit: kruise-manager would not update it in place"
		liveness = "its liveness probe is carried out by OpenKruise, and by nobody afterwards"
	)
	note := func(key, value string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) { pod.Annotations[key] = value }
	}
	condition := func(status corev1.ConditionStatus) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: v1beta1.ReadinessGateKruisePodReady, Status: status})
		}
	}
	const updating = `{"revision":"2","updateTimestamp":"2026-11-25T11:59:00Z","lastContainerStatuses":{"app":{"imageID":"old"}},"updateImages":true}`
	const waiting = `{"revision":"2","updateTimestamp":"2026-11-25T11:59:00Z","lastContainerStatuses":{},"updateImages":true,"nextContainerImages":{"app":"app:2"}}`
	const sidecar = `{"log":{"revision":"2","updateTimestamp":"2026-11-25T11:59:00Z","lastContainerStatuses":{"agent":{"imageID":"old"}}}}`
	running := func(imageID string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			for _, name := range []string{"agent", "app"} {
				pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
					Name: name, ImageID: imageID, Image: "other:1", Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
				})
			}
		}
	}
	for name, tc := range map[string]struct {
		change   []func(*corev1.Pod)
		to, from []string
	}{
		"with nothing under way":     {},
		"kept out of its Services":   {change: []func(*corev1.Pod){condition(corev1.ConditionFalse)}, to: []string{gate}, from: []string{gate}},
		"in its Services":            {change: []func(*corev1.Pod){condition(corev1.ConditionTrue)}},
		"with another liveness":      {change: []func(*corev1.Pod){note("apps.kruise.io/using-enhanced-liveness", "true")}, to: []string{liveness}},
		"being updated":              {change: []func(*corev1.Pod){note(v1beta1.AnnotationInPlaceUpdateState, updating), running("old")}, to: []string{own}, from: []string{own}},
		"with updates that wait":     {change: []func(*corev1.Pod){note(v1beta1.AnnotationInPlaceUpdateState, waiting), running("old")}, to: []string{own}, from: []string{own}},
		"that was updated":           {change: []func(*corev1.Pod){note(v1beta1.AnnotationInPlaceUpdateState, updating), running("new")}},
		"with sidecars in an update": {change: []func(*corev1.Pod){note(v1beta1.AnnotationSidecarSetInPlaceUpdateState, sidecar), running("old")}, to: []string{sidecars}, from: []string{sidecars}},
		"with a quantity that cannot be compared": {change: []func(*corev1.Pod){note(v1beta1.AnnotationInPlaceUpdateState, updating), running("old"), func(pod *corev1.Pod) {
			pod.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceCPU: *resource.NewScaledQuantity(1, 1000)}
		}}},
		"with a report that cannot be read": {change: []func(*corev1.Pod){note(v1beta1.AnnotationInPlaceUpdateState, updating), running("old"), note(v1beta1.AnnotationRuntimeContainersMeta, "{")},
			to: []string{own}, from: []string{own}},
		"with updated sidecars":            {change: []func(*corev1.Pod){note(v1beta1.AnnotationSidecarSetInPlaceUpdateState, sidecar), running("new")}},
		"of the system":                    {change: []func(*corev1.Pod){func(pod *corev1.Pod) { pod.Namespace = "kube-system" }}, to: []string{system}},
		"of a control plane":               {change: []func(*corev1.Pod){func(pod *corev1.Pod) { pod.Namespace, pod.Annotations = "edge", nil }}, to: []string{plane}},
		"of the system, not injected":      {change: []func(*corev1.Pod){func(pod *corev1.Pod) { pod.Namespace, pod.Annotations = "kube-system", nil }}, from: []string{excluded}},
		"excluded by a flag":               {change: []func(*corev1.Pod){func(pod *corev1.Pod) { pod.Namespace, pod.Annotations = "left-out", nil }}, from: []string{excluded}},
		"excluded by a flag, injected":     {change: []func(*corev1.Pod){func(pod *corev1.Pod) { pod.Namespace = "left-out" }}, to: []string{strings.Replace(system, "kube-system", "left-out", 1)}},
		"of an excluded namespace":         {change: []func(*corev1.Pod){func(pod *corev1.Pod) { pod.Namespace, pod.Annotations = "quiet", nil }}, from: []string{excluded}},
		"of an excluded one, injected":     {change: []func(*corev1.Pod){func(pod *corev1.Pod) { pod.Namespace = "quiet" }}},
		"of an excluded one, not selected": {change: []func(*corev1.Pod){func(pod *corev1.Pod) { pod.Namespace, pod.Annotations, pod.Labels = "quiet", nil, nil }}},
		"of a control plane, injected":     {change: []func(*corev1.Pod){func(pod *corev1.Pod) { pod.Namespace = "edge" }}, from: []string{planed}},
		"of a control plane, not selected": {change: []func(*corev1.Pod){func(pod *corev1.Pod) { pod.Namespace, pod.Annotations, pod.Labels = "edge", nil, nil }}},
		"not injected":                     {change: []func(*corev1.Pod){func(pod *corev1.Pod) { pod.Annotations = nil }}},
		"with a hash of before":            {change: []func(*corev1.Pod){note(v1beta1.AnnotationSidecarSetHash, `{"log":{"hash":"before","sidecarSetName":"log","controllerRevision":"log-2"}}`)}, from: []string{hash}},
		"with an older revision":           {change: []func(*corev1.Pod){note(v1beta1.AnnotationSidecarSetHash, `{"log":{"hash":"before","sidecarSetName":"log","controllerRevision":"log-1"}}`)}},
		"with a hash alone":                {change: []func(*corev1.Pod){note(v1beta1.AnnotationSidecarSetHash, `{"log":"before"}`)}},
		"with nothing of what is listed":   {change: []func(*corev1.Pod){note(v1beta1.AnnotationSidecarSetHash, `{}`)}},
		"with a hash that is not listed":   {change: []func(*corev1.Pod){note(v1beta1.AnnotationSidecarSetList, "mesh"), note(v1beta1.AnnotationSidecarSetHash, `{"log":{"hash":"before","sidecarSetName":"log","controllerRevision":"log-2"}}`)}},
		"that has ended":                   {change: []func(*corev1.Pod){condition(corev1.ConditionFalse), func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodSucceeded }}},
		"that has failed":                  {change: []func(*corev1.Pod){condition(corev1.ConditionFalse), func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodFailed }}},
		"that is being deleted":            {change: []func(*corev1.Pod){condition(corev1.ConditionFalse), func(pod *corev1.Pod) { pod.DeletionTimestamp = &metav1.Time{Time: now} }}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set := newSet(func(set *v1beta1.SidecarSet) { set.Status.LatestRevision = "log-2" })
			expect(t, clusterOf(set).OfPod(injectedPod(set, tc.change...), now.Add(time.Minute)), tc.to, tc.from)
		})
	}
}

func TestWorkloads(t *testing.T) {
	t.Parallel()
	const (
		clash  = "it has a container agent, which SidecarSet log has too: OpenKruise replaces it, Refit refuses new pods"
		order  = "the containers of its pods are started in order by OpenKruise; Refit has no such feature"
		config = "its containers are not restarted when a ConfigMap or Secret changes"
		volume = "it has another volume data, which SidecarSet log has too: OpenKruise mounts it into the sidecar, Refit refuses new pods"
		hook   = "a request to restart its container db is refused by Refit: the preStop hook has a host"
	)
	mounting := func(set *v1beta1.SidecarSet) {
		set.Spec.Volumes = []corev1.Volume{
			{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			{Name: "unused", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		}
		set.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
	}
	volumes := func(name string, source corev1.VolumeSource) func(*openkruise.Workload) {
		return func(w *openkruise.Workload) {
			w.Template.Spec.Volumes = []corev1.Volume{{Name: name, VolumeSource: source}}
		}
	}
	empty, host := corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}, corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/var"}}
	stopping := func(hook corev1.LifecycleHandler) func(*openkruise.Workload) {
		return func(w *openkruise.Workload) {
			w.Template.Spec.Containers = append(w.Template.Spec.Containers, corev1.Container{Name: "db", Lifecycle: &corev1.Lifecycle{PreStop: &hook}})
		}
	}
	container := func(name string, env ...corev1.EnvVar) func(*openkruise.Workload) {
		return func(w *openkruise.Workload) {
			w.Template.Spec.Containers = append(w.Template.Spec.Containers, corev1.Container{Name: name, Env: env})
		}
	}
	for name, tc := range map[string]struct {
		set      func(*v1beta1.SidecarSet)
		change   []func(*openkruise.Workload)
		to, from []string
	}{
		"without a clash":                                 {},
		"with a sidecar's name":                           {change: []func(*openkruise.Workload){container("agent")}, to: []string{clash}},
		"with the sidecar itself":                         {change: []func(*openkruise.Workload){container("agent", corev1.EnvVar{Name: v1beta1.EnvSidecarInjected, Value: "true"})}},
		"with a sidecar's name, as the SidecarSet allows": {set: func(set *v1beta1.SidecarSet) { set.Spec.InjectionStrategy.ConflictPolicy = v1beta1.ConflictOverride }, change: []func(*openkruise.Workload){container("agent")}},
		"of a namespace that is not selected":             {set: func(set *v1beta1.SidecarSet) { set.Spec.Namespace = "games" }, change: []func(*openkruise.Workload){container("agent")}},
		"that is not selected":                            {change: []func(*openkruise.Workload){container("agent"), func(w *openkruise.Workload) { w.Template.Labels = nil }}},
		"with the name of an init container": {set: func(set *v1beta1.SidecarSet) {
			set.Spec.InitContainers = []v1beta1.SidecarContainer{{Container: corev1.Container{Name: "setup", Image: "a"}}}
		}, change: []func(*openkruise.Workload){func(w *openkruise.Workload) { w.Template.Spec.InitContainers = []corev1.Container{{Name: "setup"}} }},
			to: []string{"it has a container setup, which SidecarSet log has too: OpenKruise replaces it, Refit refuses new pods"}},
		"with one of two for hot upgrades": {set: func(set *v1beta1.SidecarSet) {
			set.Spec.Containers[0].UpgradeStrategy = v1beta1.SidecarContainerUpgradeStrategy{UpgradeType: v1beta1.HotUpgrade, HotUpgradeEmptyImage: "empty"}
		}, change: []func(*openkruise.Workload){container("agent-2")},
			to: []string{"it has a container agent-2, which SidecarSet log has too: OpenKruise replaces it, Refit refuses new pods"}},
		"with another volume of the name":   {set: mounting, change: []func(*openkruise.Workload){volumes("data", host)}, to: []string{volume}},
		"with the same volume":              {set: mounting, change: []func(*openkruise.Workload){volumes("data", empty)}},
		"with a volume that nobody mounts":  {set: mounting, change: []func(*openkruise.Workload){volumes("unused", host)}},
		"stopped by a call of another host": {change: []func(*openkruise.Workload){stopping(corev1.LifecycleHandler{HTTPGet: &corev1.HTTPGetAction{Host: "example.com"}})}, to: []string{hook}},
		"stopped by a call of itself":       {change: []func(*openkruise.Workload){stopping(corev1.LifecycleHandler{HTTPGet: &corev1.HTTPGetAction{}})}},
		"stopped by a command":              {change: []func(*openkruise.Workload){stopping(corev1.LifecycleHandler{Exec: &corev1.ExecAction{}})}},
		"started in order by an annotation": {change: []func(*openkruise.Workload){func(w *openkruise.Workload) {
			w.Template.Annotations = map[string]string{"apps.kruise.io/container-launch-priority": "Ordered"}
		}}, to: []string{order}},
		"started in order by a variable": {change: []func(*openkruise.Workload){container("db", corev1.EnvVar{Name: "KRUISE_CONTAINER_PRIORITY", Value: "1"})}, to: []string{order}},
		"restarted by its configuration": {change: []func(*openkruise.Workload){func(w *openkruise.Workload) {
			w.Annotations = map[string]string{refitv1alpha1.AnnotationRestartOnConfigChange: "app"}
		}}, from: []string{config}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set := newSet()
			if tc.set != nil {
				set = newSet(tc.set)
			}
			w := &openkruise.Workload{Kind: "Deployment", Namespace: "shop", Name: "web"}
			w.Template.Labels = map[string]string{"app": "web"}
			w.Template.Spec.Containers = []corev1.Container{{Name: "app"}}
			for _, change := range tc.change {
				change(w)
			}
			expect(t, clusterOf(set).OfWorkload(w), tc.to, tc.from)
		})
	}
}

// A selector of others that cannot be read selects nothing, and the run continues.
func TestSelectorThatCannotBeReadSelectsNothing(t *testing.T) {
	t.Parallel()
	set := newSet(func(set *v1beta1.SidecarSet) {
		set.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Is"}}}
	})
	w := &openkruise.Workload{Kind: "Deployment", Namespace: "shop", Name: "web"}
	w.Template.Spec.Containers = []corev1.Container{{Name: "agent"}}
	expect(t, clusterOf(set).OfWorkload(w), nil, nil)
}
