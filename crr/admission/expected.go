package admission

import (
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/foreign"
)

// checkExpected refuses a request if the instances that the client expected have already been replaced: it would
// restart the new instances. The request must already be completed from the pod.
func checkExpected(request *v1beta1.ContainerRecreateRequest) error {
	text, ok := request.Annotations[v1beta1.AnnotationExpectedInstances]
	if !ok {
		return nil
	}
	field := fmt.Sprintf("metadata.annotations[%s]", v1beta1.AnnotationExpectedInstances)
	var expected map[string]string
	if err := foreign.JSON(text, &expected); err != nil {
		return invalid(field, "must be a JSON object from the name of a container to its containerID: %v", err)
	}
	current := map[string]string{}
	for _, container := range request.Spec.Containers {
		current[container.Name] = container.StatusContext.ContainerID
	}
	for _, name := range slices.Sorted(maps.Keys(expected)) {
		is, ok := current[name]
		if !ok {
			return invalid(field, "container %.100q is not in spec.containers", name)
		}
		if is != expected[name] {
			return &Refusal{Code: http.StatusConflict, Field: field, Message: fmt.Sprintf("container %s has been replaced: it is %s, and %.100q was to be recreated",
				name, is, expected[name])}
		}
	}
	return nil
}
