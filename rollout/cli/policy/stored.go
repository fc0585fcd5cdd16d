package policy

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/internal/foreign"
	"github.com/refit-project/refit/rollout/workload"
)

// stored is a workload as the API server has it, with the templates that its controller keeps.
type stored struct {
	object      client.Object // a Deployment, StatefulSet or DaemonSet
	selector    labels.Selector
	replicaSets []*appsv1.ReplicaSet // of a Deployment
	revisions   []*appsv1.ControllerRevision
}

// read reads the workload.
func (c *command) read(ctx context.Context) (*stored, error) {
	object := workload.NewObject(c.target.Kind)
	if err := c.API.Get(ctx, c.key(c.target.Name), object); err != nil {
		return nil, err
	}
	selector, err := foreign.Selector(workload.SelectorOf(object))
	if err != nil {
		return nil, fmt.Errorf("selector of %s: %w", c.target, err)
	}
	s := &stored{object: object, selector: selector}
	return s, c.readHistory(ctx, s)
}

// readHistory reads the ReplicaSets or ControllerRevisions of the workload.
func (c *command) readHistory(ctx context.Context, s *stored) error {
	options := []client.ListOption{client.InNamespace(c.Namespace), client.MatchingLabelsSelector{Selector: s.selector}}
	if c.target.Kind == "Deployment" {
		var list appsv1.ReplicaSetList
		if err := c.API.List(ctx, &list, options...); err != nil {
			return fmt.Errorf("list ReplicaSets: %w", err)
		}
		for i := range list.Items {
			if metav1.IsControlledBy(&list.Items[i], s.object) {
				s.replicaSets = append(s.replicaSets, &list.Items[i])
			}
		}
		return nil
	}
	var list appsv1.ControllerRevisionList
	if err := c.API.List(ctx, &list, options...); err != nil {
		return fmt.Errorf("list ControllerRevisions: %w", err)
	}
	for i := range list.Items {
		if metav1.IsControlledBy(&list.Items[i], s.object) {
			s.revisions = append(s.revisions, &list.Items[i])
		}
	}
	return nil
}

// owns reports whether the workload controls a pod.
func (s *stored) owns(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil {
		return false
	}
	return owner.UID == s.object.GetUID() || slices.ContainsFunc(s.replicaSets, func(set *appsv1.ReplicaSet) bool { return set.UID == owner.UID })
}

// with returns the workload as it would be, or is, in another version.
func (s *stored) with(object client.Object) *stored {
	other := *s
	other.object = object
	return &other
}

// template returns the pod template.
func (s *stored) template() *corev1.PodTemplateSpec { return workload.TemplateOf(s.object) }

// workload returns the form in which package workload decides.
func (s *stored) workload() (*workload.Workload, error) {
	return workload.From(s.object, s.replicaSets, s.revisions)
}
