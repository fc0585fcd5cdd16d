package openkruise

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/inplace"
	"github.com/refit-project/refit/inplace/record"
	"github.com/refit-project/refit/inplace/reported"
	"github.com/refit-project/refit/internal/foreign"
	"github.com/refit-project/refit/internal/kubelet"
	"github.com/refit-project/refit/sidecarset/annotation"
)

// Annotations and labels of OpenKruise that Refit does not use.
const (
	annotationLaunchPriority   = "apps.kruise.io/container-launch-priority"
	annotationEnhancedLiveness = "apps.kruise.io/using-enhanced-liveness"
	envLaunchPriority          = "KRUISE_CONTAINER_PRIORITY"
	envIgnoreExitCode          = "KRUISE_TERMINATE_SIDECAR_IGNORE_EXIT_CODE"
	labelControlPlane          = "control-plane"
)

// OfPod returns the differences for a pod.
func (c *Cluster) OfPod(pod *corev1.Pod, now time.Time) []Difference {
	o := of{kind: "Pod", name: named(pod.Namespace, pod.Name)}
	if pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return nil
	}
	o.ofUpdates(pod, now)
	if gate := kubelet.Condition(&pod.Status, v1beta1.ReadinessGateKruisePodReady); gate != nil && gate.Status == corev1.ConditionFalse {
		o.both("it is kept out of its Services by the condition KruisePodReady, until who has set it takes that back", "wait until the condition is True")
	}
	if pod.Annotations[annotationEnhancedLiveness] == "true" {
		o.to("its liveness probe is carried out by OpenKruise, and by nobody afterwards", "remove the annotation "+annotationEnhancedLiveness+" from its template, and create it again")
	}
	c.ofInjection(&o, pod)
	return o.found
}

// ofUpdates adds differences for updates in place that have not ended.
func (o *of) ofUpdates(pod *corev1.Pod, now time.Time) {
	if foreign.Pod(pod) != nil {
		return // and nobody updates it
	}
	known, err := reported.Read(pod)
	if err != nil {
		known = nil // a record that others have written there is ignored
	}
	for _, recorded := range record.All(pod) {
		switch {
		case inplace.Next(pod, recorded, known, now).Kind == inplace.KindDone:
		case recorded.SidecarSet != "":
			o.both("a SidecarSet updates its containers in place", "wait until the update has ended; otherwise the other manager goes on with it")
		default:
			o.both("an update of its containers in place is under way, and the other manager does not go on with it", "wait until the update has ended")
		}
	}
}

// ofInjection adds differences for sidecars that the next pod of the same template gets, or does not.
func (c *Cluster) ofInjection(o *of, pod *corev1.Pod) {
	injected := len(annotation.Names(pod)) > 0
	labels := c.Namespaces[pod.Namespace]
	_, plane := labels[labelControlPlane]
	byManager := pod.Namespace == metav1.NamespaceSystem || slices.Contains(c.Excluded, pod.Namespace)
	excluded := byManager || labels[v1beta1.LabelSidecarInjection] == "disabled"
	const exclude = "label the namespace " + v1beta1.LabelSidecarInjection + "=disabled"
	switch selected := len(c.selecting(pod.Namespace, pod.Labels)) > 0; {
	case plane && injected:
		o.from("its namespace has the label control-plane, so OpenKruise injects nothing into the pods that come after it", "write the sidecars into its template")
	case plane && !excluded && selected:
		o.to("its namespace has the label control-plane, so OpenKruise injects nothing; Refit does, into the pods that come after it", exclude)
	case excluded && !plane && !injected && selected:
		o.from("Refit injects nothing into pods of its namespace; OpenKruise does, into the pods that come after it", "leave the namespace out by the namespaceSelector of the SidecarSets")
	}
	if injected && byManager {
		o.to("it has sidecars; Refit injects nothing into pods of namespace "+pod.Namespace, "write the sidecars into its template")
	}
	for _, set := range c.SidecarSets {
		if c.outdatedHash(set, pod) {
			o.from("it has the newest revision of SidecarSet "+set.Name+", with a hash of an earlier version of Refit: kruise-manager would not update it in place",
				"update the SidecarSet once under Refit, or create the pod again")
		}
	}
}

// outdatedHash reports whether a pod has the newest revision of a SidecarSet, but another hash.
func (c *Cluster) outdatedHash(set *v1beta1.SidecarSet, pod *corev1.Pod) bool {
	if !slices.Contains(annotation.Names(pod), set.Name) {
		return false
	}
	injected := annotation.Of(pod, set.Name)
	hash := set.Annotations[v1beta1.AnnotationSidecarSetHash]
	return injected != nil && hash != "" && injected.Hash != hash &&
		injected.ControllerRevision != "" && injected.ControllerRevision == set.Status.LatestRevision
}

// Workload is an object with a pod template.
type Workload struct {
	Kind, Namespace, Name string
	Annotations           map[string]string
	Template              corev1.PodTemplateSpec
}

// OfWorkload returns the differences for a workload.
func (c *Cluster) OfWorkload(w *Workload) []Difference {
	o := of{kind: w.Kind, name: named(w.Namespace, w.Name)}
	if w.Annotations[v1alpha1.AnnotationRestartOnConfigChange] != "" {
		o.from("its containers are not restarted when a ConfigMap or Secret changes", "remove the annotation "+v1alpha1.AnnotationRestartOnConfigChange)
	}
	if launchesInOrder(&w.Template) {
		o.to("the containers of its pods are started in order by OpenKruise; Refit has no such feature", "use init containers, or native sidecars")
	}
	for i := range w.Template.Spec.Containers {
		c.ofJobs(&o, &w.Template.Spec.Containers[i])
	}
	for i := range w.Template.Spec.Containers {
		o.ofHook(&w.Template.Spec.Containers[i])
	}
	for _, in := range c.selecting(w.Namespace, w.Template.Labels) {
		if in.set.Spec.InjectionStrategy.ConflictPolicy == "" {
			o.ofClashes(&in, &w.Template.Spec)
		}
	}
	return o.found
}

// ofClashes adds differences for names that a pod template and a SidecarSet both use.
func (o *of) ofClashes(in *injector, spec *corev1.PodSpec) {
	const rename = "rename it, or set injectionStrategy.conflictPolicy of the SidecarSet when Refit's CRDs are installed"
	for _, name := range in.taken(spec) {
		o.to("it has a container "+name+", which SidecarSet "+in.set.Name+" has too: OpenKruise replaces it, Refit refuses new pods", rename)
	}
	for _, name := range in.otherVolumes(spec) {
		o.to("it has another volume "+name+", which SidecarSet "+in.set.Name+" has too: OpenKruise mounts it into the sidecar, Refit refuses new pods", rename)
	}
}

// ofHook adds a difference for a preStop hook that Refit does not run.
func (o *of) ofHook(container *corev1.Container) {
	if container.Lifecycle == nil || container.Lifecycle.PreStop == nil {
		return
	}
	if get := container.Lifecycle.PreStop.HTTPGet; get != nil && get.Host != "" {
		o.to("a request to restart its container "+short(container.Name)+" is refused by Refit: the preStop hook has a host",
			"remove the host, or set terminationGracePeriodSeconds: 0 in requests")
	}
}

// ofJobs adds differences for a container that has to end with the other containers of a Job.
func (c *Cluster) ofJobs(o *of, container *corev1.Container) {
	has := func(name string) bool {
		return slices.ContainsFunc(container.Env, func(e corev1.EnvVar) bool { return e.Name == name })
	}
	if (has(v1beta1.EnvTerminateSidecar) || has(v1beta1.EnvTerminateSidecarWithImage)) && !c.Gates[gateTerminator] {
		const asks = " asks to be ended with its Job: Refit does that, "
		if c.Gates != nil {
			o.to("container "+short(container.Name)+asks+"kruise-manager does not, as its feature gate "+gateTerminator+" is off", "remove the variable if it is not to be ended")
		}
		o.from("container "+short(container.Name)+asks+"kruise-manager only with the feature gate "+gateTerminator, "switch the gate on")
	}
	if has(envIgnoreExitCode) {
		o.to("container "+short(container.Name)+" has "+envIgnoreExitCode+", which has no effect: a sidecar that ends with another code than 0 makes the pod fail",
			"let it end with 0 after TERM")
	}
}

func launchesInOrder(template *corev1.PodTemplateSpec) bool {
	if template.Annotations[annotationLaunchPriority] != "" {
		return true
	}
	return slices.ContainsFunc(template.Spec.Containers, func(c corev1.Container) bool {
		return slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == envLaunchPriority })
	})
}

// taken returns the names of the SidecarSet's containers that the template uses for its own containers.
func (in *injector) taken(spec *corev1.PodSpec) []string {
	var names []string
	for _, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			brought := slices.ContainsFunc(list[i].Env, func(e corev1.EnvVar) bool { return e.Name == v1beta1.EnvSidecarInjected })
			if !brought && slices.Contains(in.containers, list[i].Name) {
				names = append(names, list[i].Name)
			}
		}
	}
	return names
}

// otherVolumes returns the names of the volumes that sidecars mount, and that the template has as other volumes.
func (in *injector) otherVolumes(spec *corev1.PodSpec) []string {
	var names []string
	for i := range in.volumes {
		wanted := &in.volumes[i]
		if slices.ContainsFunc(spec.Volumes, func(v corev1.Volume) bool { return v.Name == wanted.Name && !equality.Semantic.DeepEqual(&v, wanted) }) {
			names = append(names, wanted.Name)
		}
	}
	return names
}
