// Package probespec decides which probes of a NodePodProbe's spec can be run, and with which address, ports and
// thresholds. It reads values only.
package probespec

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/kubelet"
	"github.com/refit-project/refit/probe"
)

// Bounds of one NodePodProbe. A kubelet takes some 250 pods; a probe costs a goroutine and, of exec, a process
// each time.
const (
	// maxName bounds a probe's name, "<marker>#<probe>", in bytes, as the CRD does.
	maxName = 512
)

// Pod is an entry of the spec with those of its probes that can be run.
type Pod struct {
	Namespace, Name string
	UID             types.UID
	Probes          []v1alpha1.ContainerProbe // names differ
	Refused         []error                   // why each of the others cannot be run
}

// Key is namespace/name.
func (p Pod) Key() string { return p.Namespace + "/" + p.Name }

// Read reads a spec by the UIDs of its pods. A probe that could not be run whatever its pod is like is
// left out and kept as refused.
func Read(spec v1alpha1.NodePodProbeSpec) map[types.UID]Pod {
	all := make(map[types.UID]Pod, len(spec.PodProbes))
	total := 0
	for _, entry := range spec.PodProbes {
		uid := types.UID(entry.UID)
		p, again := all[uid]
		if again && (p.Namespace != entry.Namespace || p.Name != entry.Name) {
			p.Refused = append(p.Refused, fmt.Errorf("pod %s/%s has its UID too", entry.Namespace, entry.Name))
			all[uid] = p
			continue
		}
		p.Namespace, p.Name, p.UID = entry.Namespace, entry.Name, uid
		for i, one := range entry.Probes {
			if err := p.refuse(one, total); err != nil {
				p.Refused = append(p.Refused, err)
				if errors.Is(err, errTooMany) { // so are the rest, which may be thousands
					p.Refused[len(p.Refused)-1] = fmt.Errorf("%d probes are left out: %w", len(entry.Probes)-i, err)
					break
				}
				continue
			}
			p.Probes = append(p.Probes, one)
			total++
		}
		all[uid] = p
	}
	return all
}

var errTooMany = errors.New("too many probes")

func (p Pod) refuse(one v1alpha1.ContainerProbe, total int) error {
	switch {
	case one.Name == "" || len(one.Name) > maxName:
		return fmt.Errorf("name of %d bytes: want 1 to %d", len(one.Name), maxName)
	case slices.ContainsFunc(p.Probes, func(other v1alpha1.ContainerProbe) bool { return other.Name == one.Name }):
		return fmt.Errorf("probe %q: name given twice", one.Name)
	case len(p.Probes) >= v1alpha1.MaxProbesOfPod:
		return fmt.Errorf("%w: a pod can have %d", errTooMany, v1alpha1.MaxProbesOfPod)
	case total >= v1alpha1.MaxProbesOfNode:
		return fmt.Errorf("%w: a node can have %d", errTooMany, v1alpha1.MaxProbesOfNode)
	}
	// With some address and some way to run commands: what is wrong now will be wrong with the right ones too.
	if _, err := Spec(one.Probe.Probe, probe.Place{Host: "192.0.2.1", Ports: anyPort(one.Probe.Probe), Execer: nowhere{}}); err != nil {
		return fmt.Errorf("probe %q: %w", one.Name, err)
	}
	return nil
}

// anyPort has a port of the name that the probe uses, if it uses one: only the pod knows better.
func anyPort(p corev1.Probe) []corev1.ContainerPort {
	switch {
	case p.HTTPGet != nil:
		return []corev1.ContainerPort{{Name: p.HTTPGet.Port.StrVal, ContainerPort: 1}}
	case p.TCPSocket != nil:
		return []corev1.ContainerPort{{Name: p.TCPSocket.Port.StrVal, ContainerPort: 1}}
	}
	return nil
}

// Spec of a probe has the defaults of OpenKruise's daemon where those are not Kubernetes': once a second, and one failure
// counts. Markers rely on it, and a result is a state among others here and not a reason to kill.
func Spec(p corev1.Probe, place probe.Place) (probe.Spec, error) {
	p.PeriodSeconds = cmp.Or(p.PeriodSeconds, 1)
	p.FailureThreshold = cmp.Or(p.FailureThreshold, 1)
	return probe.FromKubernetes(&p, place)
}

// Container is a container in a pod's status.
type Container struct {
	Instance  string // ID; empty: none was ever started
	Running   bool
	StartedAt time.Time
	Ports     []corev1.ContainerPort
}

// ContainerOf looks in containers and native sidecars; false when the pod has none of that name.
func ContainerOf(pod *corev1.Pod, name string) (Container, bool) {
	var c Container
	found := false
	for _, specs := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for _, spec := range specs {
			if spec.Name == name {
				found, c.Ports = true, spec.Ports
			}
		}
	}
	if status := kubelet.StatusOf(pod, name); status != nil {
		c.Instance = status.ContainerID
		if status.State.Running != nil && status.ContainerID != "" {
			c.Running, c.StartedAt = true, status.State.Running.StartedAt.Time
		}
	}
	return c, found
}

// Address is the pod's own as kubelet has it; that of the NodePodProbe is not needed. It is empty as long as there is
// none.
func Address(pod *corev1.Pod) string {
	ip, err := netip.ParseAddr(pod.Status.PodIP)
	if err != nil {
		return ""
	}
	return ip.String()
}

// NeedsAddress reports whether a probe needs the pod's address.
func NeedsAddress(p corev1.Probe) bool { return p.Exec == nil }

// Kind is the label of metrics.
func Kind(p corev1.Probe) string {
	switch {
	case p.Exec != nil:
		return "exec"
	case p.HTTPGet != nil:
		return "http"
	case p.TCPSocket != nil:
		return "tcp"
	default:
		return "grpc"
	}
}

// faultsShown of one pod fit into an Event.
const faultsShown = 3

// Describe joins the faults of a pod for one Event.
func Describe(key string, faults []error) string {
	words := make([]string, 0, faultsShown+1)
	for i, fault := range faults {
		if i == faultsShown {
			words = append(words, fmt.Sprintf("and %d more", len(faults)-i))
			break
		}
		words = append(words, strings.ToValidUTF8(fault.Error(), "\uFFFD"))
	}
	return fmt.Sprintf("Not probing all of pod %s: %s", key, strings.Join(words, "; "))
}

// nowhere is used instead of the container when a spec is checked.
type nowhere struct{}

func (nowhere) Exec(context.Context, []string) (probe.Execution, error) {
	return probe.Execution{}, probe.ErrNotRun
}
