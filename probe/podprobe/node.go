package podprobe

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/internal/kubelet"
	"github.com/refit-project/refit/probe/podprobe/share"
)

// NodeSpec computes the complete spec of a node's NodePodProbe from the pods of the node. It takes the probes of the pods in known from
// there, by UID, and not from the pod, which may not be complete; known may be nil. If the probes exceed what one object can hold,
// namespaces get equal shares, and in each namespace pods with small probes come first. The second result is the pods that are left out.
func NodeSpec(pods []*corev1.Pod, markers []Marker, known map[types.UID]v1alpha1.PodProbe) (v1alpha1.NodePodProbeSpec, []*corev1.Pod) {
	byUID := make(map[string]*corev1.Pod, len(pods))
	var all []v1alpha1.PodProbe
	for _, pod := range pods {
		probes, ok := known[pod.UID]
		if !ok {
			probes = PodSpec(pod, markers)
		}
		if len(probes.Probes) > 0 {
			byUID[string(pod.UID)] = pod
			all = append(all, probes)
		}
	}
	all, out := share.Fit(all)
	omitted := make([]*corev1.Pod, len(out))
	for i, p := range out {
		omitted[i] = byUID[p.UID]
	}
	slices.SortFunc(all, func(a, b v1alpha1.PodProbe) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
	})
	return v1alpha1.NodePodProbeSpec{PodProbes: all}, omitted
}

// PodSpec returns the probes of a pod, none if it is not probed. They are the part of NodeSpec for the pod if there is space for them.
func PodSpec(pod *corev1.Pod, markers []Marker) v1alpha1.PodProbe {
	spec := v1alpha1.PodProbe{Name: pod.Name, Namespace: pod.Namespace, UID: string(pod.UID), IP: pod.Status.PodIP}
	if Probeable(pod) {
		spec.Probes, _ = probesOf(pod, markers)
	}
	return spec
}

// probesOf returns the probes of a pod up to the limit, and the names of the markers with probes beyond the limit.
func probesOf(pod *corev1.Pod, markers []Marker) (probes []v1alpha1.ContainerProbe, omitted map[string]bool) {
	for _, p := range resolvable(pod, markers) {
		switch {
		case len(probes) < v1alpha1.MaxProbesOfPod:
			probes = append(probes, v1alpha1.ContainerProbe{Name: p.fullName(), ContainerName: p.ContainerName, Probe: p.resolved})
		case omitted == nil:
			omitted = map[string]bool{p.marker: true}
		default:
			omitted[p.marker] = true
		}
	}
	return probes, omitted
}

// probeOfPod is a probe of a marker for a pod that has the probe's container and port.
type probeOfPod struct {
	v1alpha1.PodContainerProbe
	marker   string
	resolved v1alpha1.ContainerProbeSpec
}

func (p probeOfPod) fullName() string { return FullName(p.marker, p.Name) }

// resolvable returns the probes of the markers that select a pod, without probes whose container or port is missing.
func resolvable(pod *corev1.Pod, markers []Marker) []probeOfPod {
	var probes []probeOfPod
	for _, m := range markers {
		if !m.Selects(pod) {
			continue
		}
		for _, p := range m.Probes {
			if resolved, err := resolve(pod, p); err == nil {
				probes = append(probes, probeOfPod{PodContainerProbe: p, marker: m.Name, resolved: resolved})
			}
		}
	}
	return probes
}

// resolve finds the container of a probe, and replaces named ports by numbers.
func resolve(pod *corev1.Pod, p v1alpha1.PodContainerProbe) (v1alpha1.ContainerProbeSpec, error) {
	ports, found := portsOf(pod, p.ContainerName)
	if !found {
		return v1alpha1.ContainerProbeSpec{}, fmt.Errorf("pod %s has no container %s", pod.Name, p.ContainerName)
	}
	probe := *p.Probe.DeepCopy()
	var port *intstr.IntOrString
	switch {
	case probe.HTTPGet != nil:
		port = &probe.HTTPGet.Port
	case probe.TCPSocket != nil:
		port = &probe.TCPSocket.Port
	}
	if port == nil || port.Type == intstr.Int {
		return probe, nil
	}
	for _, candidate := range ports {
		if candidate.Name == port.StrVal {
			*port = intstr.FromInt32(candidate.ContainerPort)
			return probe, nil
		}
	}
	return probe, fmt.Errorf("container %s of pod %s has no port named %s", p.ContainerName, pod.Name, port.StrVal)
}

// Lacks returns an error with the container or the named port of a probe that a pod does not have; nil if it has both.
func Lacks(pod *corev1.Pod, p v1alpha1.PodContainerProbe) error {
	_, err := resolve(pod, p)
	return err
}

// portsOf returns the named ports of a regular container or a restartable init container.
func portsOf(pod *corev1.Pod, container string) ([]corev1.ContainerPort, bool) {
	if c := kubelet.ContainerIn(pod.Spec.Containers, container); c != nil {
		return c.Ports, true
	}
	if c := kubelet.ContainerIn(pod.Spec.InitContainers, container); c != nil && c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
		return c.Ports, true
	}
	return nil, false
}
