package admission

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/crr/podrules"
	"github.com/refit-project/refit/internal/kubelet"
)

// maxNames limits the length of lists of container names in messages.
const maxNames = 20

// checkPod checks the rules that concern the whole pod.
func checkPod(request *v1beta1.ContainerRecreateRequest, observed Observation) error {
	const path = "spec.podName"
	pod, name := observed.Pod, request.Spec.PodName
	switch {
	case pod == nil:
		return invalid(path, "no found Pod named %s in namespace %s", name, request.Namespace)
	case !active(pod) && !podrules.SidecarTerminated(pod):
		return invalid(path, "not allowed to recreate containers in an inactive Pod: %s %s", name, inactivity(pod))
	case pod.Spec.NodeName == "":
		return invalid(path, "not allowed to recreate containers in a pending Pod: %s is not bound to a node yet", name)
	case observed.Node == nil:
		return invalid(path, "no found Node named %s, to which Pod %s is bound", pod.Spec.NodeName, name)
	}
	// A mirror pod represents a static pod. The runtime knows the static pod by the UID in this annotation.
	if kubelet.IsMirrorPod(pod) && pod.Annotations[kubelet.AnnotationConfigHash] == "" {
		return invalid(path, "Pod %s mirrors a static pod whose UID is unknown: annotation %s is missing", name, kubelet.AnnotationConfigHash)
	}
	return nil
}

func active(pod *corev1.Pod) bool { return pod.DeletionTimestamp == nil && !crr.PodEnded(pod) }

func inactivity(pod *corev1.Pod) string {
	if pod.DeletionTimestamp != nil {
		return "is being deleted"
	}
	return "has ended with phase " + string(pod.Status.Phase)
}

func setDefaults(spec *v1beta1.ContainerRecreateRequestSpec, pod *corev1.Pod) {
	if spec.Strategy == nil {
		spec.Strategy = &v1beta1.ContainerRecreateRequestStrategy{}
	}
	if spec.Strategy.FailurePolicy == "" {
		spec.Strategy.FailurePolicy = v1beta1.FailurePolicyFail
	}
	if spec.Strategy.TerminationGracePeriodSeconds == nil && pod.Spec.TerminationGracePeriodSeconds != nil {
		grace := *pod.Spec.TerminationGracePeriodSeconds
		if grace < 0 {
			grace = 1 // how the API server and kubelet treat it
		}
		grace = min(grace, v1beta1.MaxSeconds)
		spec.Strategy.TerminationGracePeriodSeconds = &grace
	}
}

// inject fills in container i of the request from the pod, or returns why the container cannot be recreated.
func inject(request *v1beta1.ContainerRecreateRequest, i int, pod *corev1.Pod) error {
	container := &request.Spec.Containers[i]
	field := fmt.Sprintf("spec.containers[%d].name", i)
	spec, status, err := find(pod, container.Name, field)
	if err != nil {
		return err
	}
	if err := checkRestartPolicy(request, pod, container.Name, field); err != nil {
		return err
	}
	if status == nil {
		return invalid(field, "not found %s containerStatus in Pod Status: kubelet has not reported on it yet", container.Name)
	}
	if status.ContainerID == "" {
		return invalid(field, "no containerID in %s containerStatus, maybe the container has not been initialized%s", container.Name, waiting(status))
	}
	container.StatusContext = &v1beta1.ContainerRecreateRequestContainerContext{
		ContainerID: status.ContainerID, RestartCount: status.RestartCount,
	}
	if grace := request.Spec.Strategy.TerminationGracePeriodSeconds; grace != nil && *grace == 0 {
		return nil // stopped without a grace period, so the hook does not run
	}
	return injectPreStop(container, spec, field)
}

// checkRestartPolicy refuses restarts that would end the container, or the whole pod.
func checkRestartPolicy(request *v1beta1.ContainerRecreateRequest, pod *corev1.Pod, container, field string) error {
	alone := len(podrules.Others(pod, container)) == 0
	policy := kubelet.RestartPolicyOf(pod, container)
	switch {
	case podrules.SidecarTerminated(pod):
		return nil
	case alone && (podrules.NeedsOther(request, pod, container) || !policy.Restartable()):
		return invalid(field, "container %s cannot be restarted: %s; replace the pod instead", container, podrules.EndsPod(pod, container))
	case !policy.Restartable() && !podrules.OverridesRestartPolicy(request):
		return invalid(field, "stopping container %s would end it, because its restartPolicy is %s; to restart it nevertheless, "+
			"while another container of the pod is running, set annotation %s: %s",
			container, policy.Policy, v1beta1.AnnotationRestartPolicy, v1beta1.RestartPolicyOverride)
	}
	return nil
}

// find returns the container and its status. It only finds containers that kubelet restarts after an exit.
func find(pod *corev1.Pod, name, field string) (*corev1.Container, *corev1.ContainerStatus, error) {
	if c := kubelet.ContainerIn(pod.Spec.Containers, name); c != nil {
		return c, kubelet.StatusIn(pod.Status.ContainerStatuses, name), nil
	}
	if c := kubelet.ContainerIn(pod.Spec.InitContainers, name); c != nil {
		if c.RestartPolicy == nil || *c.RestartPolicy != corev1.ContainerRestartPolicyAlways {
			return nil, nil, invalid(field, "%s is an init container: it runs once, before the pod's containers, and kubelet does not run it again; "+
				"only native sidecars, with restartPolicy: Always, can be recreated", name)
		}
		return c, kubelet.StatusIn(pod.Status.InitContainerStatuses, name), nil
	}
	for _, c := range pod.Spec.EphemeralContainers {
		if c.Name == name {
			return nil, nil, invalid(field, "%s is an ephemeral container: kubelet never restarts one; add another with kubectl debug", name)
		}
	}
	return nil, nil, invalid(field, "container %s not found in Pod %s, which has %s", name, pod.Name, listNames(pod.Spec.Containers))
}

func listNames(containers []corev1.Container) string {
	var names []string
	for _, c := range containers[:min(len(containers), maxNames)] {
		names = append(names, c.Name)
	}
	if len(containers) > maxNames {
		names = append(names, fmt.Sprintf("and %d more", len(containers)-maxNames))
	}
	return strings.Join(names, ", ")
}

func waiting(status *corev1.ContainerStatus) string {
	if status.State.Waiting == nil || status.State.Waiting.Reason == "" {
		return ""
	}
	return " (waiting: " + status.State.Waiting.Reason + ")"
}

// injectPreStop copies the preStop hook into the request. The daemon runs it in place of kubelet before it stops the
// container.
func injectPreStop(container *v1beta1.ContainerRecreateRequestContainer, spec *corev1.Container, field string) error {
	if spec.Lifecycle == nil || spec.Lifecycle.PreStop == nil {
		return nil
	}
	const wayOut = "to stop it without its preStop hook set spec.strategy.terminationGracePeriodSeconds: 0"
	hook := spec.Lifecycle.PreStop.DeepCopy()
	switch {
	case hook.TCPSocket != nil:
		return invalid(field, "container %s has a preStop hook tcpSocket, which kubelet does not run either: change it to exec, httpGet or sleep; %s", container.Name, wayOut)
	// The daemon sends requests from the node's network. A pod must not choose their destination.
	case hook.HTTPGet != nil && hook.HTTPGet.Host != "":
		return invalid(field, "container %s has a preStop hook httpGet with host %.100q: refit-daemon calls only the pod itself, so remove host; %s",
			container.Name, hook.HTTPGet.Host, wayOut)
	case hook.Exec == nil && hook.HTTPGet == nil && hook.Sleep == nil:
		return nil
	}
	container.PreStop = &v1beta1.ProbeHandler{Exec: hook.Exec, HTTPGet: hook.HTTPGet, Sleep: hook.Sleep}
	if hook.HTTPGet != nil && hook.HTTPGet.Port.Type == intstr.String {
		container.Ports = slices.Clone(spec.Ports)
	}
	return nil
}

// setLabels labels the request with the identity of the pod and its node. Daemons and managers select requests by these
// labels. It refuses other values set by the user.
func setLabels(request *v1beta1.ContainerRecreateRequest, observed Observation) error {
	if request.Labels == nil {
		request.Labels = map[string]string{}
	}
	for _, label := range []struct{ key, value string }{
		{v1beta1.LabelPodUID, string(observed.Pod.UID)},
		{v1beta1.LabelNodeName, observed.Pod.Spec.NodeName},
		{v1beta1.LabelActive, "true"},
	} {
		field := fmt.Sprintf("metadata.labels[%s]", label.key)
		if given, ok := request.Labels[label.key]; ok && given != label.value {
			return forbidden(field, "the label is set at admission, to %q: remove it from the request", label.value)
		}
		if problems := validation.IsValidLabelValue(label.value); len(problems) > 0 || label.value == "" {
			return invalid(field, "%q can not be the value of a label, by which the node's daemon finds its requests: %s",
				label.value, strings.Join(problems, "; "))
		}
		request.Labels[label.key] = label.value
	}
	if observed.Node.Labels[v1beta1.LabelType] == v1beta1.TypeVirtualKubelet {
		request.Labels[v1beta1.LabelType] = v1beta1.TypeVirtualKubelet
	}
	return nil
}

// admittedByAnother reports whether the webhook of a kruise-manager, which is called before this one, has already set
// the read-only fields: its labels name the present pod and its node. A user who sets the same labels gains nothing,
// because all values are replaced.
func admittedByAnother(request *v1beta1.ContainerRecreateRequest, pod *corev1.Pod) bool {
	return request.Labels[v1beta1.LabelPodUID] == string(pod.UID) && request.Labels[v1beta1.LabelNodeName] == pod.Spec.NodeName &&
		request.Labels[v1beta1.LabelActive] != ""
}
