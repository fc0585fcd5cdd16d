package policy

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
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
	s := &stored{}
	var selector *metav1.LabelSelector
	switch c.target.Kind {
	case "Deployment":
		s.object = &appsv1.Deployment{}
	case "StatefulSet":
		s.object = &appsv1.StatefulSet{}
	default:
		s.object = &appsv1.DaemonSet{}
	}
	if err := c.API.Get(ctx, c.key(c.target.Name), s.object); err != nil {
		return nil, err
	}
	switch o := s.object.(type) {
	case *appsv1.Deployment:
		selector = o.Spec.Selector
	case *appsv1.StatefulSet:
		selector = o.Spec.Selector
	case *appsv1.DaemonSet:
		selector = o.Spec.Selector
	}
	var err error
	if s.selector, err = foreign.Selector(selector); err != nil {
		return nil, fmt.Errorf("selector of %s: %w", c.target, err)
	}
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
	owners := []types.UID{s.object.GetUID()}
	for _, set := range s.replicaSets {
		owners = append(owners, set.UID)
	}
	for _, uid := range owners {
		if owner.UID == uid {
			return true
		}
	}
	return false
}

// with returns the workload as it would be, or is, in another version.
func (s *stored) with(object client.Object) *stored {
	other := *s
	other.object = object
	return &other
}

// template returns the pod template.
func (s *stored) template() *corev1.PodTemplateSpec {
	switch o := s.object.(type) {
	case *appsv1.Deployment:
		return &o.Spec.Template
	case *appsv1.StatefulSet:
		return &o.Spec.Template
	case *appsv1.DaemonSet:
		return &o.Spec.Template
	}
	return nil
}

// workload returns the form in which package workload decides.
func (s *stored) workload() (*workload.Workload, error) {
	switch o := s.object.(type) {
	case *appsv1.Deployment:
		return workload.FromDeployment(o, s.replicaSets)
	case *appsv1.StatefulSet:
		return workload.FromStatefulSet(o, s.revisions)
	case *appsv1.DaemonSet:
		return workload.FromDaemonSet(o, s.revisions)
	}
	return nil, nil //nolint:nilnil // there are no other kinds
}
