package output

import (
	"errors"
	"fmt"

	"github.com/refit-project/refit/identity"
)

// Object names one object of the API.
type Object struct {
	// Group is empty for the core group; Resource is the plural, as in a URL.
	Group, Version, Resource string
	// Namespace is empty for an object of the cluster.
	Namespace, Name string
	// UID, if set, makes the API server refuse a write to the next object of that name. Of pods only.
	UID string
}

// Pod names a pod.
func Pod(p identity.Pod) Object {
	return Object{Version: "v1", Resource: "pods", Namespace: p.Namespace, Name: p.Name, UID: p.UID}
}

// ConfigMap names a ConfigMap.
func ConfigMap(namespace, name string) Object {
	return Object{Version: "v1", Resource: "configmaps", Namespace: namespace, Name: name}
}

func (o Object) isPod() bool { return o.Group == "" && o.Resource == "pods" }

// String is for messages.
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

// Validate reports all faults at once.
func (o Object) Validate() error {
	var faults []error
	for field, value := range map[string]string{"version": o.Version, "resource": o.Resource, "name": o.Name} {
		if value == "" {
			faults = append(faults, fmt.Errorf("object %s: no %s", o, field))
		}
	}
	return errors.Join(faults...)
}
