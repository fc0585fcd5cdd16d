package output

import (
	"errors"
	"fmt"

	"github.com/refit-project/refit/internal/identity"
)

// Object identifies one object of the API.
type Object struct {
	// Group is empty for the core group; Resource is the plural, as in a URL.
	Group, Version, Resource string
	// Namespace is empty for a cluster-scoped object.
	Namespace, Name string
	// UID, if set, makes the API server refuse a write to a later object with the same name. Only for pods.
	UID string
}

// Pod returns the Object of a pod.
func Pod(p identity.Pod) Object {
	return Object{Version: "v1", Resource: "pods", Namespace: p.Namespace, Name: p.Name, UID: p.UID}
}

// ConfigMap returns the Object of a ConfigMap.
func ConfigMap(namespace, name string) Object {
	return Object{Version: "v1", Resource: "configmaps", Namespace: namespace, Name: name}
}

func (o Object) isPod() bool { return o.Group == "" && o.Resource == "pods" }

// String returns a name for messages.
func (o Object) String() string {
	resource := o.Resource
	if o.Group != "" {
		resource += "." + o.Group
	}
	if o.Namespace == "" {
		return resource + " " + o.Name
	}
	return fmt.Sprintf("%s %s/%s", resource, o.Namespace, o.Name)
}

// Validate returns all errors at once.
func (o Object) Validate() error {
	var errs []error
	for field, value := range map[string]string{"version": o.Version, "resource": o.Resource, "name": o.Name} {
		if value == "" {
			errs = append(errs, fmt.Errorf("object %s: no %s", o, field))
		}
	}
	return errors.Join(errs...)
}
