package podprobe

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/identity"
	"github.com/refit-project/refit/kubelet"
	"github.com/refit-project/refit/probe"
	"github.com/refit-project/refit/result/output"
)

// Annotation of a pod with the probes for it, a JSON array.
const Annotation = "kruise.io/podprobe"

const (
	// maxAnnotation is what all annotations of an object share, in bytes.
	maxAnnotation = 256 << 10
	// maxProbes bounds the goroutines that one annotation can ask for. It is what a pod can have on other nodes as well.
	maxProbes = 256
)

// wanted is one probe of the annotation. Marker policies are not in it: kruise-manager applies those.
type wanted struct {
	Name             string       `json:"name"`
	ContainerName    string       `json:"containerName"`
	PodConditionType string       `json:"podConditionType"`
	Probe            corev1.Probe `json:"probe"`
}

// key tells probes apart; another probe for the same condition replaces it.
func (w wanted) key() string { return w.PodConditionType }

// parse reads the annotation. A probe that makes no sense is left out and told of; of two for one condition the
// first counts, as with kruise-manager.
func parse(text string, pod identity.Pod) (probes []wanted, faults error) {
	if text == "" {
		return nil, nil
	}
	if len(text) > maxAnnotation {
		return nil, fmt.Errorf("annotation of %d bytes", len(text))
	}
	var all []wanted
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		return nil, fmt.Errorf("decode annotation: %w", err)
	}
	seen := map[string]bool{}
	var said []error
	for _, w := range all {
		condition := output.Condition{Object: output.Pod(pod), Type: w.PodConditionType}
		switch err := condition.Validate(); {
		case err != nil:
			said = append(said, fmt.Errorf("probe %s: %w", w.Name, err))
		case w.ContainerName == "":
			said = append(said, fmt.Errorf("probe %s: no container", w.Name))
		case seen[w.key()]:
			said = append(said, fmt.Errorf("probe %s: condition %s has a probe already", w.Name, w.PodConditionType))
		case len(probes) >= maxProbes:
			return probes, errors.Join(append(said, fmt.Errorf("more than %d probes", maxProbes))...)
		default:
			seen[w.key()] = true
			probes = append(probes, w)
		}
	}
	return probes, errors.Join(said...)
}

// spec is the probe as kruise-daemon would run it: where Kubernetes would wait 10 s between probes and for three
// failures, kruise-daemon waits 1 s and for one.
func (w wanted) spec(pod *corev1.Pod, own string) (probe.Spec, error) {
	p := w.Probe.DeepCopy()
	for _, n := range []*int32{&p.PeriodSeconds, &p.TimeoutSeconds, &p.SuccessThreshold, &p.FailureThreshold} {
		if *n <= 0 {
			*n = 1
		}
	}
	p.InitialDelaySeconds = max(p.InitialDelaySeconds, 0)
	place := probe.Place{Host: pod.Status.PodIP}
	if place.Host == "" {
		return probe.Spec{}, errors.New("the pod has no IP yet")
	}
	for _, c := range slices.Concat(pod.Spec.Containers, pod.Spec.InitContainers) {
		if c.Name == w.ContainerName {
			place.Ports = c.Ports
		}
	}
	if w.ContainerName == own {
		place.Execer = probe.Local{}
	}
	spec, err := probe.FromKubernetes(p, place)
	if err != nil {
		return spec, err
	}
	spec.Jitter = min(spec.Period, 5*time.Second)
	return spec, nil
}

// running is when the container's instance started; false when none runs.
func running(pod *corev1.Pod, container string) (time.Time, bool) {
	status := kubelet.StatusOf(pod, container)
	if status == nil || status.State.Running == nil {
		return time.Time{}, false
	}
	return status.State.Running.StartedAt.Time, true
}
