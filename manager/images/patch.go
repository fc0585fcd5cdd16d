package images

import (
	"context"
	"encoding/json"
	"errors"
	"maps"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
)

// operation of a JSON patch (RFC 6902). "add" replaces a member that exists.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// patch writes the labels, the owners and the spec of a NodeImage that was read as before. It returns a conflict if the spec has changed since:
// the API server increases the generation with each change of the spec, and not with one of the status.
func (a *api) patch(ctx context.Context, before, after *v1beta1.NodeImage) error {
	operations := []operation{{"test", "/metadata/generation", before.Generation}}
	if !maps.Equal(before.Labels, after.Labels) {
		operations = append(operations, operation{"add", "/metadata/labels", after.Labels})
	}
	if !equality.Semantic.DeepEqual(before.OwnerReferences, after.OwnerReferences) {
		operations = append(operations, operation{"add", "/metadata/ownerReferences", after.OwnerReferences})
	}
	if !equality.Semantic.DeepEqual(before.Spec, after.Spec) {
		operations = append(operations, operation{"add", "/spec", after.Spec})
	}
	text, err := json.Marshal(operations)
	if err != nil {
		return err
	}
	err = a.client.Patch(ctx, after, client.RawPatch(types.JSONPatchType, text))
	if testHasFailed(err) {
		return apierrors.NewConflict(v1beta1.GroupVersion().WithResource("nodeimages").GroupResource(), before.Name, err)
	}
	return err
}

// testHasFailed reports whether a JSON patch was refused because of its test. The API server answers with the status of an invalid
// object, 422, and unlike for an invalid object it names no field.
func testHasFailed(err error) bool {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	return ok && apierrors.IsInvalid(err) && (status.Status().Details == nil || len(status.Status().Details.Causes) == 0)
}
