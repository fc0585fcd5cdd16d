package configchange

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/internal/foreign"
	"github.com/refit-project/refit/internal/kubelet"
	"github.com/refit-project/refit/rollout"
)

// The watched kinds of objects.
const (
	ConfigMap = "ConfigMap"
	Secret    = "Secret"
)

// Settings are the settings in the annotations of a workload.
type Settings struct {
	Containers     []string
	MaxUnavailable *intstr.IntOrString // nil means the default of a RestartRollout
	Paused         bool                // rollouts are created paused
	Window         *Window             // when rollouts may be created; nil: always
}

const (
	// maxContainers is the limit of a RestartRollout.
	maxContainers = 256
	// maxContainerName is the number of bytes of a name in a message: a container has no longer name.
	maxContainerName = 63
)

var maxUnavailable = regexp.MustCompile(`^([1-9][0-9]{0,8}|([1-9][0-9]?|100)%)$`) // the rule of the CRD of RestartRollouts

// Read parses the annotations of a workload. The error is a *rollout.InvalidError.
func Read(annotations map[string]string, pod *corev1.PodSpec) (Settings, error) {
	var s Settings
	for name := range strings.SplitSeq(annotations[v1alpha1.AnnotationRestartOnConfigChange], ",") {
		name = strings.TrimSpace(name)
		switch {
		case !hasContainer(pod, name):
			return s, invalid(v1alpha1.AnnotationRestartOnConfigChange, fmt.Sprintf("must be names of containers, separated by commas: the pod template has no container %q", foreign.Shorten(name, maxContainerName)))
		case slices.Contains(s.Containers, name):
			return s, invalid(v1alpha1.AnnotationRestartOnConfigChange, fmt.Sprintf("must name each container once: %q is repeated", name))
		}
		s.Containers = append(s.Containers, name)
	}
	if len(s.Containers) > maxContainers {
		return s, invalid(v1alpha1.AnnotationRestartOnConfigChange, fmt.Sprintf("must name at most %d containers", maxContainers))
	}
	if value, ok := annotations[v1alpha1.AnnotationRestartMaxUnavailable]; ok {
		if !maxUnavailable.MatchString(value) {
			return s, invalid(v1alpha1.AnnotationRestartMaxUnavailable, "must be a number of at least 1 or a percentage from 1% to 100%")
		}
		s.MaxUnavailable = new(intstr.Parse(value))
	}
	switch value := annotations[v1alpha1.AnnotationRestartPaused]; value {
	case "true":
		s.Paused = true
	case "", "false":
	default:
		return s, invalid(v1alpha1.AnnotationRestartPaused, fmt.Sprintf("must be true or false: got %q", foreign.Shorten(value, maxText)))
	}
	var err error
	s.Window, err = readWindow(annotations)
	return s, err
}

func invalid(annotation, message string) error {
	return &rollout.InvalidError{Field: "metadata.annotations[" + annotation + "]", Message: message}
}

// hasContainer reports whether the pod has a container or native sidecar with this name, which a RestartRollout can restart.
func hasContainer(pod *corev1.PodSpec, name string) bool {
	if kubelet.ContainerIn(pod.Containers, name) != nil {
		return true
	}
	c := kubelet.ContainerIn(pod.InitContainers, name)
	return c != nil && c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

// Reference is a ConfigMap or Secret that containers use.
type Reference struct {
	Kind, Name string
	Mounted    bool // in a volume, which kubelet updates some time after the object has changed
}

// References returns the ConfigMaps and Secrets used by environment variables or mounted volumes of these containers,
// ordered by kind and name.
func References(pod *corev1.PodSpec, containers []string) []Reference {
	found := map[Reference]bool{}
	add := func(kind, name string, mounted bool) {
		if name != "" {
			key := Reference{Kind: kind, Name: name}
			found[key] = found[key] || mounted
		}
	}
	for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
		if !slices.Contains(containers, c.Name) {
			continue
		}
		environment(&c, add)
		for _, mount := range c.VolumeMounts {
			for i := range pod.Volumes {
				if pod.Volumes[i].Name == mount.Name {
					volume(&pod.Volumes[i], add)
				}
			}
		}
	}
	var all []Reference
	for key, mounted := range found {
		key.Mounted = mounted
		all = append(all, key)
	}
	slices.SortFunc(all, func(a, b Reference) int {
		return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Name, b.Name))
	})
	return all
}

func environment(c *corev1.Container, add func(kind, name string, mounted bool)) {
	for _, from := range c.EnvFrom {
		if from.ConfigMapRef != nil {
			add(ConfigMap, from.ConfigMapRef.Name, false)
		}
		if from.SecretRef != nil {
			add(Secret, from.SecretRef.Name, false)
		}
	}
	for _, variable := range c.Env {
		if from := variable.ValueFrom; from != nil && from.ConfigMapKeyRef != nil {
			add(ConfigMap, from.ConfigMapKeyRef.Name, false)
		} else if from != nil && from.SecretKeyRef != nil {
			add(Secret, from.SecretKeyRef.Name, false)
		}
	}
}

func volume(v *corev1.Volume, add func(kind, name string, mounted bool)) {
	if v.ConfigMap != nil {
		add(ConfigMap, v.ConfigMap.Name, true)
	}
	if v.Secret != nil {
		add(Secret, v.Secret.SecretName, true)
	}
	if v.Projected == nil {
		return
	}
	for _, source := range v.Projected.Sources {
		if source.ConfigMap != nil {
			add(ConfigMap, source.ConfigMap.Name, true)
		}
		if source.Secret != nil {
			add(Secret, source.Secret.Name, true)
		}
	}
}
