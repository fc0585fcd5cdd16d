package timeline

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/cli/governed"
	"github.com/refit-project/refit/cli/status"
	"github.com/refit-project/refit/inplace/record"
	"github.com/refit-project/refit/internal/kubelet"
)

// Moments of the update of a pod in place.
const (
	whatBegan   = "update of the pod began"
	whatWritten = "update written to the pod"
)

const ofRecord = "annotation " + v1beta1.AnnotationInPlaceUpdateState + " of the pod"

// update reads the moments of the last update by a policy: of the pods whose last update was to its present template.
func (c Config) update(ctx context.Context, name string) (*report, error) {
	var policy v1alpha1.InPlaceUpdatePolicy
	if err := c.API.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: name}, &policy); err != nil {
		return nil, err
	}
	r := &report{line: status.Describe(&policy)}
	finder, err := governed.New(ctx, c.API, c.Namespace)
	if err != nil {
		return nil, err
	}
	var pods corev1.PodList
	if err := c.API.List(ctx, &pods, client.InNamespace(c.Namespace)); err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		recorded, err := record.Read(pod)
		if err != nil || recorded == nil || recorded.State.Revision == "" || recorded.State.Revision != policy.Status.UpdateRevision {
			continue
		}
		of, err := finder.Policy(ctx, pod)
		if err != nil {
			return nil, err
		}
		if of != nil && of.Name == name {
			r.moments = append(r.moments, momentsOf(pod, recorded)...)
		}
	}
	if len(r.moments) == 0 {
		r.notes = append(r.notes, "No pod has the record of an update to the present template.")
	}
	slices.SortStableFunc(r.moments, func(a, b Moment) int { return a.at.Compare(b.at) })
	return r, nil
}

// momentsOf returns the moments of the update of a pod that its record and its status have.
func momentsOf(pod *corev1.Pod, recorded *record.Record) []Moment {
	all := []Moment{seconds(whatBegan, recorded.State.UpdateTimestamp, ofRecord)}
	ours := recorded.Extension()
	if ours.Written != nil {
		all = append(all, precise(whatWritten, ours.Written.Time, ofRecord))
	}
	for _, name := range slices.Sorted(maps.Keys(ours.Instances)) {
		for _, m := range instances(pod, name, ours.Instances[name].ContainerID) {
			m.Container = name
			all = append(all, m)
		}
	}
	begin := recorded.State.UpdateTimestamp
	switch ready := kubelet.Condition(&pod.Status, corev1.ContainersReady); {
	case ready == nil || ready.Status != corev1.ConditionTrue:
		all = append(all, Moment{What: whatReady, Source: notReady, NotYet: true})
	case ready.LastTransitionTime.Before(&begin):
		all = append(all, unknown(whatReady, "the pod's condition ContainersReady did not change in the update"))
	default:
		all = append(all, seconds(whatReady, ready.LastTransitionTime, "condition ContainersReady of the pod"))
	}
	last := begin.Time
	for i := range all {
		all[i].Pod, all[i].at = pod.Name, last
		if at := all[i].Time; at != nil && at.After(last) {
			all[i].at, last = at.Time, at.Time
		}
	}
	return all
}

// instances returns when the instance before the update has ended, and when the next one was started.
func instances(pod *corev1.Pod, container, old string) []Moment {
	of := kubelet.StatusOf(pod, container)
	ended, started := unknown(whatEnded, "lastState of the container is of another instance"), unknown(whatStarted, "the container is not running now")
	switch {
	case of == nil:
		return []Moment{ended, started}
	case of.ContainerID == old && of.State.Running != nil:
		return []Moment{{What: whatEnded, Source: beingStopped, NotYet: true}, {What: whatStarted, Source: beingStopped, NotYet: true}}
	}
	if last := of.LastTerminationState.Terminated; last != nil && last.ContainerID == old && old != "" {
		ended = seconds(whatEnded, last.FinishedAt, "lastState of the container")
	}
	if of.State.Running != nil {
		started = seconds(whatStarted, of.State.Running.StartedAt, "state of the container")
	}
	return []Moment{ended, started}
}
