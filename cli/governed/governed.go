// Package governed finds the InPlaceUpdatePolicy of the workload that controls a pod. It prints nothing.
package governed

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/refit/v1alpha1"
)

// Finder finds the workloads and policies of the pods of a namespace. The user may not be allowed to read them: then it finds none.
type Finder struct {
	api         client.Reader
	namespace   string
	policies    []v1alpha1.InPlaceUpdatePolicy
	deployments map[string]string // by ReplicaSet
}

// New reads the policies of a namespace.
func New(ctx context.Context, api client.Reader, namespace string) (*Finder, error) {
	f := &Finder{api: api, namespace: namespace, deployments: map[string]string{}}
	var list v1alpha1.InPlaceUpdatePolicyList
	if err := api.List(ctx, &list, client.InNamespace(namespace)); err != nil && !unknown(err) {
		return nil, fmt.Errorf("list InPlaceUpdatePolicies: %w", err)
	}
	f.policies = list.Items
	slices.SortFunc(f.policies, func(a, b v1alpha1.InPlaceUpdatePolicy) int { // the oldest of a workload is in force
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
	})
	return f, nil
}

// unknown reports whether the user may not read something, or the cluster does not have it.
func unknown(err error) bool {
	return meta.IsNoMatchError(err) || apierrors.IsForbidden(err) || apierrors.IsNotFound(err)
}

// Policy returns the policy of the workload that controls a pod; nil if there is none.
func (f *Finder) Policy(ctx context.Context, pod *corev1.Pod) (*v1alpha1.InPlaceUpdatePolicy, error) {
	if len(f.policies) == 0 {
		return nil, nil //nolint:nilnil // there is none
	}
	kind, name, err := f.workload(ctx, pod)
	if err != nil {
		return nil, err
	}
	for i := range f.policies {
		if of := f.policies[i].Spec.TargetRef; of.Kind == kind && of.Name == name {
			return &f.policies[i], nil
		}
	}
	return nil, nil //nolint:nilnil // there is none
}

// workload returns the kind and the name of the workload that controls a pod.
func (f *Finder) workload(ctx context.Context, pod *corev1.Pod) (kind, name string, err error) {
	owner := metav1.GetControllerOfNoCopy(pod)
	switch {
	case owner == nil:
		return "", "", nil
	case owner.Kind != "ReplicaSet":
		return owner.Kind, owner.Name, nil
	}
	if name, known := f.deployments[owner.Name]; known {
		return "Deployment", name, nil
	}
	set := &metav1.PartialObjectMetadata{}
	set.SetGroupVersionKind(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "ReplicaSet"})
	if err := f.api.Get(ctx, client.ObjectKey{Namespace: f.namespace, Name: owner.Name}, set); err != nil && !unknown(err) {
		return "", "", fmt.Errorf("read ReplicaSet %s: %w", owner.Name, err)
	}
	if of := metav1.GetControllerOfNoCopy(set); of != nil {
		name = of.Name
	}
	f.deployments[owner.Name] = name
	return "Deployment", name, nil
}
