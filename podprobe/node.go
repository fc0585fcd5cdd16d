package podprobe

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/refit-project/refit/api/v1alpha1"
)

const (
	// maxNode bounds the probes of a node in bytes. An object of the API can be 1.5 MiB large, and its status needs
	// room as well.
	maxNode = 768 << 10
	// maxPods is the limit of NodePodProbe's schema.
	maxPods = 1024
)

// NodeSpec is what a node is to probe: all of it, whatever it was asked to before.
//
// The pods are those of the node. Where all their probes are too large for one object the largest pods are left out,
// so that nobody can crowd out the others; they are the second result.
func NodeSpec(pods []*corev1.Pod, markers []Marker) (v1alpha1.NodePodProbeSpec, []*corev1.Pod) {
	byUID := make(map[string]*corev1.Pod, len(pods))
	var all []v1alpha1.PodProbe
	for _, pod := range pods {
		if !Probed(pod) {
			continue
		}
		if probes, _ := probesOf(pod, markers); len(probes) > 0 {
			byUID[string(pod.UID)] = pod
			all = append(all, v1alpha1.PodProbe{
				Name: pod.Name, Namespace: pod.Namespace, UID: string(pod.UID), IP: pod.Status.PodIP, Probes: probes,
			})
		}
	}
	all, out := fit(all)
	left := make([]*corev1.Pod, len(out))
	for i, p := range out {
		left[i] = byUID[p.UID]
	}
	slices.SortFunc(all, func(a, b v1alpha1.PodProbe) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
	})
	return v1alpha1.NodePodProbeSpec{PodProbes: all}, left
}

// probesOf a pod are the first that there is room for. Of the others, the names of their markers are returned.
func probesOf(pod *corev1.Pod, markers []Marker) (probes []v1alpha1.ContainerProbe, crowdedOut map[string]bool) {
	for _, m := range markers {
		if !m.Selects(pod) {
			continue
		}
		for _, p := range m.Probes {
			probe, err := resolve(pod, p)
			switch {
			case err != nil:
			case len(probes) < v1alpha1.MaxProbesOfPod:
				probes = append(probes, v1alpha1.ContainerProbe{Name: FullName(m.Name, p.Name), ContainerName: p.ContainerName, Probe: probe})
			case crowdedOut == nil:
				crowdedOut = map[string]bool{m.Name: true}
			default:
				crowdedOut[m.Name] = true
			}
		}
	}
	return probes, crowdedOut
}

// fit drops the largest until the rest is small enough.
func fit(all []v1alpha1.PodProbe) (fitting, left []v1alpha1.PodProbe) {
	sizes := make(map[string]int, len(all))
	total := 0
	for _, p := range all {
		content, err := json.Marshal(p)
		if err != nil { // there is nothing in it that cannot be encoded
			content = make([]byte, maxNode)
		}
		sizes[p.UID] = len(content)
		total += len(content)
	}
	if total <= maxNode && len(all) <= maxPods {
		return all, nil
	}
	slices.SortFunc(all, func(a, b v1alpha1.PodProbe) int {
		return cmp.Or(cmp.Compare(sizes[a.UID], sizes[b.UID]), cmp.Compare(a.UID, b.UID))
	})
	fitting = all
	for total > maxNode || len(fitting) > maxPods {
		last := len(fitting) - 1
		total -= sizes[fitting[last].UID]
		fitting = fitting[:last]
	}
	return fitting, all[len(fitting):]
}

// resolve finds the container and puts numbers in the place of named ports.
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

// portsOf a container that runs while the pod does: init containers have ended, but for those that always restart.
func portsOf(pod *corev1.Pod, container string) ([]corev1.ContainerPort, bool) {
	for _, c := range pod.Spec.Containers {
		if c.Name == container {
			return c.Ports, true
		}
	}
	for _, c := range pod.Spec.InitContainers {
		if c.Name == container && c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			return c.Ports, true
		}
	}
	return nil, false
}
