package inpod

import (
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/internal/foreign"
	"github.com/refit-project/refit/internal/identity"
	"github.com/refit-project/refit/internal/kubelet"
	"github.com/refit-project/refit/internal/result/output"
	"github.com/refit-project/refit/probe"
)

// Annotation is the annotation of a pod with its probes, as a JSON array.
const Annotation = "kruise.io/podprobe"

const (
	// maxProbes limits the goroutines that one annotation can request. Pods on other nodes have the same limit.
	maxProbes = 256
	// maxErrors and maxError limit the reported errors of an annotation: their number, and the bytes of each.
	maxErrors = 10
	maxError  = 256
)

// wanted is one probe of the annotation. It has no marker policies: kruise-manager applies those.
type wanted struct {
	Name             string       `json:"name"`
	ContainerName    string       `json:"containerName"`
	PodConditionType string       `json:"podConditionType"`
	Probe            corev1.Probe `json:"probe"`
}

// key identifies the probe. Another probe for the same condition replaces it.
func (w wanted) key() string { return w.PodConditionType }

// parse reads the annotation. It omits invalid probes and returns errors about them. If two probes have the same
// condition, the first is used, like in kruise-manager.
func parse(text string, pod identity.Pod) (probes []wanted, errs error) {
	if text == "" {
		return nil, nil
	}
	var all []wanted
	if err := foreign.JSON(text, &all); err != nil {
		return nil, fmt.Errorf("decode annotation: %w", err)
	}
	seen := map[string]bool{}
	var said []error
	addError := func(format string, args ...any) {
		if len(said) < maxErrors {
			said = append(said, errors.New(foreign.Shorten(fmt.Sprintf(format, args...), maxError)))
		}
	}
	for _, w := range all {
		condition := output.Condition{Object: output.Pod(pod), Type: w.PodConditionType}
		switch err := condition.Validate(); {
		case err != nil:
			addError("probe %s: %v", w.Name, err)
		case w.ContainerName == "":
			addError("probe %s: no container", w.Name)
		case seen[w.key()]:
			addError("probe %s: condition %s has a probe already", w.Name, w.PodConditionType)
		case len(probes) >= maxProbes:
			return probes, errors.Join(append(said, fmt.Errorf("more than %d probes", maxProbes))...)
		default:
			seen[w.key()] = true
			probes = append(probes, w)
		}
	}
	return probes, errors.Join(said...)
}

// spec returns the probe with the defaults of kruise-daemon: a period of 1 s and one failure, instead of Kubernetes' 10
// s and three failures.
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
	if c := kubelet.Container(&pod.Spec, w.ContainerName); c != nil {
		place.Ports = c.Ports
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

// hasStarted reports whether the container has an instance, or had one.
func hasStarted(status *corev1.ContainerStatus) bool {
	return status.ContainerID != "" || status.State.Terminated != nil || status.LastTerminationState.Terminated != nil || status.RestartCount > 0
}

// running returns when the container's instance started, and false if the container does not run.
func running(pod *corev1.Pod, container string) (time.Time, bool) {
	status := kubelet.StatusOf(pod, container)
	if status == nil || status.State.Running == nil {
		return time.Time{}, false
	}
	return status.State.Running.StartedAt.Time, true
}
