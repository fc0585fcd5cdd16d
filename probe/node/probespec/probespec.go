// Package probespec decides which probes of a NodePodProbe's spec can be run, and with which address, ports and
// thresholds. It only reads values.
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
	"github.com/refit-project/refit/internal/kubelet"
	"github.com/refit-project/refit/probe"
)

// Limits of one NodePodProbe. A kubelet runs about 250 pods. A probe costs a goroutine, and an exec probe a process per
// run.
const (
	// maxName limits the name of a probe, "<marker>#<probe>", in bytes, like the CRD does.
	maxName = 512
)

// Pod is an entry of the spec, with the probes that can be run.
type Pod struct {
	Namespace, Name string
	UID             types.UID
	Probes          []v1alpha1.ContainerProbe // with distinct names
	Refused         []error                   // one error for each probe that cannot be run
}

// Key returns namespace/name.
func (p Pod) Key() string { return p.Namespace + "/" + p.Name }

// Read returns the entries of a spec by the UIDs of their pods. A probe that cannot be run, whatever the pod, is moved
// to Refused.
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
				if errors.Is(err, errTooMany) { // the rest, perhaps thousands, would be refused too
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
	// Use any address and any Execer: a probe that is invalid with them is invalid with the right ones too.
	if _, err := Spec(one.Probe.Probe, probe.Place{Host: "192.0.2.1", Ports: anyPort(one.Probe.Probe), Execer: nowhere{}}); err != nil {
		return fmt.Errorf("probe %q: %w", one.Name, err)
	}
	return nil
}

// anyPort returns a port with the name that the probe uses, if it uses a name. The real port is known only for a pod.
func anyPort(p corev1.Probe) []corev1.ContainerPort {
	switch {
	case p.HTTPGet != nil:
		return []corev1.ContainerPort{{Name: p.HTTPGet.Port.StrVal, ContainerPort: 1}}
	case p.TCPSocket != nil:
		return []corev1.ContainerPort{{Name: p.TCPSocket.Port.StrVal, ContainerPort: 1}}
	}
	return nil
}

// Spec returns the spec of a probe, with the defaults of kruise-daemon if they differ from Kubernetes': a period of one
// second and a failure threshold of one. Markers rely on these defaults, and here a result only describes the
// application and does not cause a kill.
func Spec(p corev1.Probe, place probe.Place) (probe.Spec, error) {
	p.PeriodSeconds = cmp.Or(p.PeriodSeconds, 1)
	p.FailureThreshold = cmp.Or(p.FailureThreshold, 1)
	return probe.FromKubernetes(&p, place)
}

// Container is a container in the status of a pod.
type Container struct {
	Instance  string // container ID; empty if the container was never started
	Running   bool
	StartedAt time.Time
	Ports     []corev1.ContainerPort
}

// ContainerOf searches the containers and native sidecars of the pod. It returns false if the pod has none with this name.
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

// Address returns the pod's address as reported by kubelet, or "" if there is none yet. The address in the NodePodProbe
// is not needed.
func Address(pod *corev1.Pod) string {
	ip, err := netip.ParseAddr(pod.Status.PodIP)
	if err != nil {
		return ""
	}
	return ip.String()
}

// NeedsAddress reports whether a probe needs the pod's address.
func NeedsAddress(p corev1.Probe) bool { return p.Exec == nil }

// Kind returns the kind of a probe, a label value of metrics.
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

// errorsShown is the number of errors of one pod that fit into an Event.
const errorsShown = 3

// Describe joins the errors of a pod for one Event.
func Describe(key string, errs []error) string {
	words := make([]string, 0, errorsShown+1)
	for i, err := range errs {
		if i == errorsShown {
			words = append(words, fmt.Sprintf("and %d more", len(errs)-i))
			break
		}
		words = append(words, strings.ToValidUTF8(err.Error(), "\uFFFD"))
	}
	return fmt.Sprintf("Not probing all of pod %s: %s", key, strings.Join(words, "; "))
}

// nowhere is the Execer that is used while a spec is validated.
type nowhere struct{}

func (nowhere) Exec(context.Context, []string) (probe.Execution, error) {
	return probe.Execution{}, probe.ErrNotRun
}
