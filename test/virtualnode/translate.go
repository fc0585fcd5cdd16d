package main

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// uidLabel is on all objects in the backend: the UID of the pod on the virtual node.
const uidLabel = "virtual-node.test/pod-uid"

const maxName = 63

var errVolume = errors.New("kind of volume is not supported on this node")

func backendName(pod *corev1.Pod) string {
	prefix, uid := pod.Namespace+"-"+pod.Name, string(pod.UID)
	if limit := maxName - len(uid) - 1; len(prefix) > limit {
		prefix = prefix[:limit]
	}
	return prefix + "-" + uid
}

// translate returns the pod of the backend. It has none of the labels, so that nothing selects it, and not what refers to objects
// of the namespace or to the node: service account, owners, pull secrets, node selector, affinity, tolerations.
func translate(pod *corev1.Pod, namespace string) (*corev1.Pod, error) {
	spec := corev1.PodSpec{
		InitContainers: pod.Spec.InitContainers, Containers: pod.Spec.Containers,
		RestartPolicy: pod.Spec.RestartPolicy, TerminationGracePeriodSeconds: pod.Spec.TerminationGracePeriodSeconds,
		ShareProcessNamespace: pod.Spec.ShareProcessNamespace, SecurityContext: pod.Spec.SecurityContext,
		Hostname: pod.Spec.Hostname, HostAliases: pod.Spec.HostAliases,
		AutomountServiceAccountToken: new(false), EnableServiceLinks: new(false),
	}
	if spec.Hostname == "" && len(pod.Name) <= maxName {
		spec.Hostname = pod.Name
	}
	for _, volume := range pod.Spec.Volumes {
		translated, err := translateVolume(pod, volume)
		if err != nil {
			return nil, err
		}
		spec.Volumes = append(spec.Volumes, translated)
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: backendName(pod), Labels: map[string]string{uidLabel: string(pod.UID)}},
		Spec:       *spec.DeepCopy(),
	}, nil
}

// translateVolume replaces a volume whose content is from the API by a Secret, which copyVolumes writes.
func translateVolume(pod *corev1.Pod, volume corev1.Volume) (corev1.Volume, error) {
	if volume.EmptyDir != nil || volume.Image != nil {
		return volume, nil
	}
	_, mode, ok := sourcesOf(volume)
	if !ok {
		return volume, fmt.Errorf("volume %s: %w", volume.Name, errVolume)
	}
	secret := &corev1.SecretVolumeSource{SecretName: volumeName(pod, volume), DefaultMode: mode}
	return corev1.Volume{Name: volume.Name, VolumeSource: corev1.VolumeSource{Secret: secret}}, nil
}

// setImages reports whether an image has changed.
func setImages(to, from []corev1.Container) bool {
	changed := false
	for i := range min(len(to), len(from)) {
		if to[i].Name == from[i].Name && to[i].Image != from[i].Image {
			to[i].Image, changed = from[i].Image, true
		}
	}
	return changed
}
