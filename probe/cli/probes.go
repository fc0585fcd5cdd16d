// Package cli lists the probes of PodProbeMarkers with their results.
package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/foreign"
	"github.com/refit-project/refit/internal/table"
	"github.com/refit-project/refit/probe/podprobe"
)

// Config says which probes to list.
type Config struct {
	API client.Client
	// Namespace limits the list to a namespace; empty means all namespaces.
	Namespace string
	// Pod limits the list to a pod; empty means all pods.
	Pod string
	table.Options
	Now func() time.Time
}

// Probe is one row of the list.
type Probe struct {
	Object                                        client.Object // the object that the result was read from
	Namespace, Pod, Container, Marker, Name, Node string
	State, Message                                string
	Since                                         time.Time
}

// List prints the probes. Users who may not read NodePodProbes, which are cluster-scoped, only see results that are
// conditions of pods. For pods on virtual nodes these are all results.
func List(ctx context.Context, config Config, out io.Writer) error {
	found, err := config.ofNodes(ctx)
	switch {
	case apierrors.IsForbidden(err):
		found, err = config.ofPods(ctx, func(*corev1.Pod, v1beta1.PodContainerProbe) bool { return true })
	case err == nil:
		var more []Probe
		if more, err = config.ofPods(ctx, notOfNodes); apierrors.IsForbidden(err) {
			err = nil // the remaining probes are useful without them
		}
		found = append(found, more...)
	}
	if err != nil {
		return err
	}
	if len(found) == 0 && config.Pod != "" && config.Namespace != "" {
		pod := &corev1.Pod{}
		if err := config.API.Get(ctx, client.ObjectKey{Namespace: config.Namespace, Name: config.Pod}, pod); apierrors.IsNotFound(err) {
			return err
		} // a user who may not read it sees in the output that no results are shown
	}
	slices.SortFunc(found, func(a, b Probe) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Pod, b.Pod), strings.Compare(a.Marker, b.Marker), strings.Compare(a.Name, b.Name))
	})
	shown := table.Table{
		Columns: []table.Column{{Name: "POD"}, {Name: "CONTAINER"}, {Name: "MARKER"}, {Name: "PROBE"}, {Name: "STATE"}, {Name: "FOR"}, {Name: "NODE", Wide: true}, {Name: "MESSAGE", Wide: true}},
		Nothing: "there are no probes",
	}
	if config.Namespace == "" {
		shown.Columns = append([]table.Column{{Name: "NAMESPACE"}}, shown.Columns...)
	}
	for _, p := range found {
		age := "-"
		if !p.Since.IsZero() {
			age = duration.HumanDuration(config.Now().Sub(p.Since))
		}
		cells := []any{p.Pod, p.Container, p.Marker, p.Name, p.State, age, p.Node, firstLine(p.Message)}
		if config.Namespace == "" {
			cells = append([]any{p.Namespace}, cells...)
		}
		shown.Rows = append(shown.Rows, table.Row{Object: p.Object, Cells: cells})
	}
	return table.Print(out, config.Options, config.API.Scheme(), shown)
}

func firstLine(text string) string {
	line, rest, _ := strings.Cut(text, "\n")
	if rest != "" {
		line += " ..."
	}
	return line
}

func (c Config) wants(namespace, pod string) bool {
	return (c.Namespace == "" || c.Namespace == namespace) && (c.Pod == "" || c.Pod == pod)
}

// ofNodes returns the probes and the results reported by daemons, from NodePodProbes.
func (c Config) ofNodes(ctx context.Context) ([]Probe, error) {
	var nodes v1beta1.NodePodProbeList
	if err := c.API.List(ctx, &nodes); err != nil {
		return nil, err
	}
	var found []Probe
	for i := range nodes.Items {
		node := &nodes.Items[i]
		for _, pod := range node.Spec.PodProbes {
			if !c.wants(pod.Namespace, pod.Name) {
				continue
			}
			for _, probe := range pod.Probes {
				marker, name, _ := strings.Cut(probe.Name, "#")
				one := Probe{Object: node, Namespace: pod.Namespace, Pod: pod.Name, Container: probe.ContainerName, Marker: marker, Name: name, Node: node.Name, State: string(v1beta1.ProbeUnknown)}
				if state := result(&node.Status, pod.UID, probe.Name); state != nil {
					one.State, one.Message, one.Since = string(state.State), state.Message, state.LastTransitionTime.Time
				}
				found = append(found, one)
			}
		}
	}
	return found, nil
}

func result(status *v1beta1.NodePodProbeStatus, uid, name string) *v1beta1.ContainerProbeState {
	for i := range status.PodProbeStatuses {
		if status.PodProbeStatuses[i].UID != uid {
			continue
		}
		for j := range status.PodProbeStatuses[i].ProbeStates {
			if state := &status.PodProbeStatuses[i].ProbeStates[j]; state.Name == name {
				return state
			}
		}
	}
	return nil
}

// onVirtualNode reports whether a probe runs on a virtual node, in the sidecar of the pod or in the agent of the provider.
func onVirtualNode(pod *corev1.Pod, probe v1beta1.PodContainerProbe) bool {
	return pod.Annotations[v1beta1.AnnotationPodProbe] != "" && probe.PodConditionType != ""
}

// notOfNodes reports whether no NodePodProbe has a probe of a pod: it runs on a virtual node, or cannot run anywhere.
func notOfNodes(pod *corev1.Pod, probe v1beta1.PodContainerProbe) bool {
	return onVirtualNode(pod, probe) || podprobe.Probeable(pod) && podprobe.Lacks(pod, probe) != nil
}

// ofPods returns the wanted probes of the markers, with the results from the conditions of the pods that the markers select.
func (c Config) ofPods(ctx context.Context, wanted func(*corev1.Pod, v1beta1.PodContainerProbe) bool) ([]Probe, error) {
	var markers v1beta1.PodProbeMarkerList
	if err := c.API.List(ctx, &markers, client.InNamespace(c.Namespace)); err != nil {
		return nil, err
	}
	var found []Probe
	for i := range markers.Items {
		marker := &markers.Items[i]
		selector, err := foreign.Selector(marker.Spec.Selector)
		if err != nil {
			return nil, fmt.Errorf("selector of PodProbeMarker %s/%s: %w", marker.Namespace, marker.Name, err)
		}
		var pods corev1.PodList
		if err := c.API.List(ctx, &pods, client.InNamespace(marker.Namespace), client.MatchingLabelsSelector{Selector: selector}); err != nil {
			return nil, err
		}
		for j := range pods.Items {
			pod := &pods.Items[j]
			if !c.wants(pod.Namespace, pod.Name) {
				continue
			}
			for _, probe := range marker.Spec.Probes {
				if wanted(pod, probe) {
					found = append(found, ofPod(pod, marker.Name, probe))
				}
			}
		}
	}
	return found, nil
}

func ofPod(pod *corev1.Pod, marker string, probe v1beta1.PodContainerProbe) Probe {
	one := Probe{Object: pod, Namespace: pod.Namespace, Pod: pod.Name, Container: probe.ContainerName, Marker: marker, Name: probe.Name, Node: pod.Spec.NodeName, State: "?"}
	if err := podprobe.Lacks(pod, probe); err != nil {
		one.State, one.Message = string(v1beta1.ProbeUnknown), err.Error()
		return one
	}
	for _, condition := range pod.Status.Conditions {
		if probe.PodConditionType == "" || string(condition.Type) != probe.PodConditionType {
			continue
		}
		switch {
		case condition.Status == corev1.ConditionTrue:
			one.State = string(v1beta1.ProbeSucceeded)
		case condition.Status == corev1.ConditionUnknown, condition.Reason == podprobe.ReasonProbeUnknown: // refit-manager sets False with this reason if there is no result
			one.State = string(v1beta1.ProbeUnknown)
		default:
			one.State = string(v1beta1.ProbeFailed)
		}
		one.Message, one.Since = condition.Message, condition.LastTransitionTime.Time
	}
	return one
}
