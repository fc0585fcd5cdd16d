package guard

import (
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Object identifies what a piece of code handles. It is small, so that it can be kept when the object is gone.
type Object struct {
	Kind      string // such as Pod
	Namespace string // empty for a cluster-scoped object
	Name      string
	UID       string // empty if there is none, or if it is not known
}

// String returns "kind namespace/name".
func (o Object) String() string {
	name := o.Name
	if o.Namespace != "" {
		name = o.Namespace + "/" + o.Name
	}
	return strings.TrimSpace(o.Kind + " " + name)
}

// Subject returns the identity of an object. It is called only when there is something to report.
type Subject func() Object

// Named returns a Subject for an Object.
func Named(object Object) Subject { return func() Object { return object } }

// Of returns a Subject for an object of the API. For other values it has only the type.
func Of(object any) Subject {
	return func() Object {
		named := Object{Kind: kind(object)}
		if o, ok := object.(metav1.Object); ok {
			named.Namespace, named.Name, named.UID = o.GetNamespace(), o.GetName(), string(o.GetUID())
		}
		return named
	}
}

// OfType is Of with the type of the object.
func OfType[T any](object T) Subject { return Of(object) }

// name calls the subject, and recovers a panic of it, such as by a nil pointer.
func (s Subject) name() (object Object) {
	defer func() { _ = recover() }()
	return s()
}

// kind returns the kind in the object, or the name of its type: clients leave the kind out of what they read.
func kind(object any) string {
	if o, ok := object.(runtime.Object); ok {
		if said := o.GetObjectKind().GroupVersionKind().Kind; said != "" {
			return said
		}
	}
	of := reflect.TypeOf(object)
	if of != nil && of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if of == nil {
		return ""
	}
	return of.Name()
}
