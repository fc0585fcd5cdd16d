package cluster

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
)

// kruiseLacks are the fields of Refit that the CRDs of OpenKruise drop, by the CRD: each path is below the schema's status.
var kruiseLacks = map[string][][]string{
	requestCRD:                         {{"containerRecreateStates", "items", "properties", "containerID"}},
	"podprobemarkers." + v1beta1.Group: {{"conditions"}},
	"nodepodprobes." + v1beta1.Group:   {{"conditions"}},
}

const requestCRD = "containerrecreaterequests." + v1beta1.Group

// PruneCRDs makes the CRDs like the CRDs of OpenKruise, and returns what puts them back.
func (c *Cluster) PruneCRDs(ctx context.Context) (restore func(context.Context) error, err error) {
	var full []*unstructured.Unstructured
	restore = func(ctx context.Context) error {
		var errs []error
		for _, crd := range full {
			errs = append(errs, c.putSpec(ctx, crd))
		}
		return errors.Join(errs...)
	}
	for name, paths := range kruiseLacks {
		crd := newCRD(name)
		if err := c.Get(ctx, client.ObjectKeyFromObject(crd), crd); err != nil {
			return restore, fmt.Errorf("read CRD %s: %w", name, err)
		}
		pruned := crd.DeepCopy()
		versions, _, err := unstructured.NestedSlice(pruned.Object, "spec", "versions")
		if err != nil {
			return restore, fmt.Errorf("versions of CRD %s: %w", name, err)
		}
		for _, version := range versions {
			for _, path := range paths {
				below := append([]string{"schema", "openAPIV3Schema", "properties", "status", "properties"}, path...)
				unstructured.RemoveNestedField(version.(map[string]any), below...)
			}
		}
		if err := unstructured.SetNestedSlice(pruned.Object, versions, "spec", "versions"); err != nil {
			return restore, fmt.Errorf("versions of CRD %s: %w", name, err)
		}
		full = append(full, crd)
		if err := c.putSpec(ctx, pruned); err != nil {
			return restore, err
		}
	}
	return restore, nil
}

// putSpec replaces the spec of a CRD, whatever has been written to it meanwhile.
func (c *Cluster) putSpec(ctx context.Context, crd *unstructured.Unstructured) error {
	now := newCRD(crd.GetName())
	if err := c.Get(ctx, client.ObjectKeyFromObject(now), now); err != nil {
		return fmt.Errorf("read CRD %s: %w", crd.GetName(), err)
	}
	now.Object["spec"] = crd.Object["spec"]
	if err := c.Update(ctx, now); err != nil {
		return fmt.Errorf("write CRD %s: %w", crd.GetName(), err)
	}
	return nil
}

func newCRD(name string) *unstructured.Unstructured {
	crd := &unstructured.Unstructured{}
	crd.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	crd.SetName(name)
	return crd
}
