// Package proof decides what to trust in a pod that claims to have been injected. Such pods occur if the webhook is
// called again in one request, after other webhooks have changed what it injected, and if a pod is created from the
// manifest of another one. Whoever may create pods can write the same annotations and containers. So nothing that the
// client has sent is trusted: it is compared.
package proof

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/sidecarset/subset"
)

// Keys are annotations. One of them that the client has not sent tells what admission has done in this request.
var Keys = []string{v1beta1.AnnotationSidecarSetChecked, v1beta1.AnnotationSidecarSetCheckedAgain}

// Records are the annotations that a client sends only if it creates a pod from the manifest of another one.
var Records = append([]string{v1beta1.AnnotationSidecarSetHash, v1beta1.AnnotationSidecarSetList, v1beta1.AnnotationSidecarSetSkipped}, Keys...)

// Claims is what a pod claims about its injection, and who has written it.
type Claims struct {
	sent  *sent
	pod   *corev1.Pod
	again map[string]bool // SidecarSets that were injected earlier in this request
}

// Read reads the claims of a pod as the webhook gets it.
func Read(pod *corev1.Pod) *Claims {
	c := &Claims{sent: readSent(pod.ManagedFields), pod: pod, again: map[string]bool{}}
	for _, key := range Keys {
		if !c.sent.annotation(key) {
			for name := range strings.SplitSeq(pod.Annotations[key], ",") {
				c.again[name] = true
			}
		}
	}
	return c
}

// Sent reports whether the client has sent a container with this name.
func (c *Claims) Sent(container string) bool { return c.sent.container(container) }

// Ours reports whether only other webhooks can have changed a container of the SidecarSet since it was injected or compared.
func (c *Claims) Ours(sidecarSet, container string) bool {
	return !c.sent.container(container) || c.again[sidecarSet]
}

// Expected returns an injected container with the changes by the API server, as far as the container in the pod has
// them: the mount of the service account's token, ports of the host, and the pull policy Always.
func (c *Claims) Expected(has, injected *corev1.Container) *corev1.Container {
	wanted := injected.DeepCopy()
	if n := len(has.VolumeMounts); n == len(wanted.VolumeMounts)+1 && isToken(&has.VolumeMounts[n-1]) {
		wanted.VolumeMounts = append(wanted.VolumeMounts, has.VolumeMounts[n-1])
	}
	if has.ImagePullPolicy == corev1.PullAlways { // set by the admission plugin AlwaysPullImages
		wanted.ImagePullPolicy = corev1.PullAlways
	}
	if c.pod.Spec.HostNetwork {
		for i := range wanted.Ports {
			if wanted.Ports[i].HostPort == 0 {
				wanted.Ports[i].HostPort = wanted.Ports[i].ContainerPort
			}
		}
	}
	return wanted
}

// isToken recognizes the mount that the admission plugin ServiceAccount adds to every container. It accepts any volume
// with such a name. A user could put the same data into the pod without this mount.
func isToken(mount *corev1.VolumeMount) bool {
	const path, volumes = "/var/run/secrets/kubernetes.io/serviceaccount", "kube-api-access-"
	return strings.HasPrefix(mount.Name, volumes) && reflect.DeepEqual(*mount, corev1.VolumeMount{Name: mount.Name, MountPath: path, ReadOnly: true})
}

// SameVolume reports whether a volume of the pod is the one of the SidecarSet. carried says that the pod claims to have
// been injected.
func (c *Claims) SameVolume(sidecarSet string, carried bool, has json.RawMessage, wanted *corev1.Volume) bool {
	if carried && (!c.sent.volume(wanted.Name) || c.again[sidecarSet]) {
		return subset.Covers(has, wanted)
	}
	return subset.Equal(has, wanted)
}

// Record returns the annotation that records which SidecarSets have been injected or skipped: its key, its value, and
// the keys to remove. The next call in this request and the policy of required sidecars read it. An empty key means
// that none is needed, for example because the client has sent no records, so that the records themselves are the
// proof.
func (c *Claims) Record(injected, skipped []string) (key, value string, removed []string) {
	if c.sent == nil || !slices.ContainsFunc(Records, c.sent.annotation) {
		return "", "", nil
	}
	for _, candidate := range Keys {
		switch {
		case c.sent.annotation(candidate):
			removed = append(removed, candidate)
		case key == "":
			key = candidate
		}
	}
	if key == "" {
		return "", "", removed // the client has sent both: nothing can be proved
	}
	names := slices.Clone(injected)
	for _, name := range skipped {
		names = append(names, "-"+name)
	}
	for name := range strings.SplitSeq(c.pod.Annotations[key], ",") { // written by a policy, or by an earlier call
		if name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return key, strings.Join(slices.Compact(names), ","), removed
}
