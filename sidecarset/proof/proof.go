// Package proof decides what is believed of a pod that says that SidecarSets have been injected into it. That is so when the webhook
// is invoked again in one request, after other webhooks have changed what it injected, and for pods that are created from the
// manifest of another one. Whoever may create pods can write the same annotations and containers, so nothing is believed that the
// client has sent: it is compared.
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

// Keys are the annotations of which one, that the client has not sent, says what admission has done in this request.
var Keys = []string{v1beta1.AnnotationSidecarSetChecked, v1beta1.AnnotationSidecarSetCheckedAgain}

// Records are the annotations that a client sends only if it creates a pod from the manifest of another one.
var Records = append([]string{v1beta1.AnnotationSidecarSetHash, v1beta1.AnnotationSidecarSetList, v1beta1.AnnotationSidecarSetSkipped}, Keys...)

// Claims are what a pod says of itself, and who has written it.
type Claims struct {
	sent  *sent
	pod   *corev1.Pod
	again map[string]bool // names of SidecarSets that were injected earlier in this request
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

// Sent reports whether the client has sent a container of that name.
func (c *Claims) Sent(container string) bool { return c.sent.container(container) }

// Ours reports whether what has become of a container of the SidecarSet since it was injected or compared is by other webhooks.
func (c *Claims) Ours(sidecarSet, container string) bool {
	return !c.sent.container(container) || c.again[sidecarSet]
}

// Expected is a container to inject as the API server would complete it, if the pod's has that: with the mount of the service
// account's token, with ports of the host, and with the pull policy Always.
func (c *Claims) Expected(has, injected *corev1.Container) *corev1.Container {
	wanted := injected.DeepCopy()
	if n := len(has.VolumeMounts); n == len(wanted.VolumeMounts)+1 && isToken(&has.VolumeMounts[n-1]) {
		wanted.VolumeMounts = append(wanted.VolumeMounts, has.VolumeMounts[n-1])
	}
	if has.ImagePullPolicy == corev1.PullAlways { // by the admission plugin AlwaysPullImages
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

// isToken recognizes what the admission plugin ServiceAccount adds to every container. It takes any volume of such a name, so
// what an owner of pods could put there he can without this mount.
func isToken(mount *corev1.VolumeMount) bool {
	const path, volumes = "/var/run/secrets/kubernetes.io/serviceaccount", "kube-api-access-"
	return strings.HasPrefix(mount.Name, volumes) && reflect.DeepEqual(*mount, corev1.VolumeMount{Name: mount.Name, MountPath: path, ReadOnly: true})
}

// SameVolume reports whether a volume of the pod is the one that a SidecarSet has. Carried says that the pod claims to have been
// injected.
func (c *Claims) SameVolume(sidecarSet string, carried bool, has json.RawMessage, wanted *corev1.Volume) bool {
	if carried && (!c.sent.volume(wanted.Name) || c.again[sidecarSet]) {
		return subset.Covers(has, wanted)
	}
	return subset.Equal(has, wanted)
}

// Record is the annotation that says which SidecarSets have been injected or skipped: its key, its value, and the keys that have to
// be removed. It is for the next call in this request, and for the policy of required sidecars; without a key there is none, as for
// a pod without records from its client, where the records themselves prove it.
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
		return "", "", removed // somebody has sent both: nothing can be proved
	}
	names := slices.Clone(injected)
	for _, name := range skipped {
		names = append(names, "-"+name)
	}
	for name := range strings.SplitSeq(c.pod.Annotations[key], ",") { // by a policy, or an earlier call
		if name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return key, strings.Join(slices.Compact(names), ","), removed
}
