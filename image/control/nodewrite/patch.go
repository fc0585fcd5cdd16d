package nodewrite

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/managedfields"
)

// operation is an operation of a JSON patch (RFC 6902). "add" replaces an existing member.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// patch writes the differences between before and after in labels, owners, outcomes and spec. It returns a conflict if the stored
// spec has changed since before was read: the API server increases the generation with each change of the spec, and not
// with changes of the status.
func patch(ctx context.Context, to client.Client, before, after *v1beta1.NodeImage) error {
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
	operations = append(operations, annotate(before, after)...)
	operations = append(operations, operation{"add", "/metadata/managedFields", managedfields.Untracked()})
	text, err := json.Marshal(operations)
	if err != nil {
		return err
	}
	err = to.Patch(ctx, after, client.RawPatch(types.JSONPatchType, text))
	if testHasFailed(err) {
		return apierrors.NewConflict(v1beta1.GroupVersion().WithResource("nodeimages").GroupResource(), before.Name, err)
	}
	return err
}

// endedPath is the path of the annotation with the outcomes of removed entries.
var endedPath = "/metadata/annotations/" + strings.ReplaceAll(v1beta1.AnnotationEndedPulls, "/", "~1")

// annotate returns the operations that write the outcomes of removed entries. Other annotations are not changed.
func annotate(before, after *v1beta1.NodeImage) []operation {
	was, had := before.Annotations[v1beta1.AnnotationEndedPulls]
	is, has := after.Annotations[v1beta1.AnnotationEndedPulls]
	switch {
	case had == has && was == is:
		return nil
	case !has:
		return []operation{{Op: "remove", Path: endedPath}}
	case len(before.Annotations) == 0:
		return []operation{{"add", "/metadata/annotations", map[string]string{v1beta1.AnnotationEndedPulls: is}}}
	}
	return []operation{{"add", endedPath, is}}
}

// testHasFailed reports whether a JSON patch was refused because its test operation failed. The API server answers with
// the status of an invalid object, 422, but unlike for an invalid object it names no field.
func testHasFailed(err error) bool {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	return ok && apierrors.IsInvalid(err) && (status.Status().Details == nil || len(status.Status().Details.Causes) == 0)
}
