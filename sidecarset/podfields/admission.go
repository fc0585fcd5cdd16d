package podfields

import (
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/refit-project/refit/api/v1beta1"
)

// Verbs of the permissions that the annotations need.
const (
	verbInject         = "inject"                  // on the serviceaccount, in all namespaces
	verbShareProcesses = "share-process-namespace" // on the SidecarSet
)

func at(annotation string) *field.Path {
	return field.NewPath("metadata", "annotations").Key(annotation)
}

// Check returns the errors in the annotations of a SidecarSet.
func Check(set *v1beta1.SidecarSet) field.ErrorList {
	var errs field.ErrorList
	if account, ok := set.Annotations[v1beta1.AnnotationSidecarSetServiceAccount]; ok {
		for _, message := range validation.IsDNS1123Subdomain(account) {
			errs = append(errs, field.Invalid(at(v1beta1.AnnotationSidecarSetServiceAccount), account, message))
		}
	}
	if share, ok := set.Annotations[v1beta1.AnnotationSidecarSetShareProcesses]; ok && share != "true" && share != "false" {
		errs = append(errs, field.NotSupported(at(v1beta1.AnnotationSidecarSetShareProcesses), share, []string{"true", "false"}))
	}
	return errs
}

// Clash returns an error if two SidecarSets that can select the same pods request different service accounts, or nil.
func Clash(set, other *v1beta1.SidecarSet) *field.Error {
	mine, theirs := of(set).account, of(other).account
	if mine == "" || theirs == "" || mine == theirs {
		return nil
	}
	return field.Invalid(at(v1beta1.AnnotationSidecarSetServiceAccount), mine,
		fmt.Sprintf("SidecarSet %s, which can select the same pods, asks for service account %s", other.Name, theirs))
}

// Right is a permission that a user who writes a SidecarSet needs.
type Right struct {
	// Annotation is the annotation of the SidecarSet that needs it.
	Annotation string
	Attributes authorizationv1.ResourceAttributes
}

// Error returns the error for a user without the permission.
func (r Right) Error(user string) *field.Error {
	resource := r.Attributes.Resource
	if r.Attributes.Group != "" {
		resource += "." + r.Attributes.Group
	}
	return field.Forbidden(at(r.Annotation), fmt.Sprintf("it needs the right to %s %s %q in the whole cluster, which %q does not have",
		r.Attributes.Verb, resource, r.Attributes.Name, user))
}

// Rights returns the permissions needed to create or update a SidecarSet; old is nil if it is created. They are also
// needed to change what is injected, because its containers run with the service account and see the processes. They
// are not needed to pause it, or to change the rollout to existing pods.
func Rights(set, old *v1beta1.SidecarSet) []Right {
	asked := of(set)
	if old != nil && asked == of(old) && equality.Semantic.DeepEqual(injected(set), injected(old)) {
		return nil
	}
	var rights []Right
	if asked.account != "" {
		rights = append(rights, Right{v1beta1.AnnotationSidecarSetServiceAccount, authorizationv1.ResourceAttributes{
			Verb: verbInject, Version: "v1", Resource: "serviceaccounts", Name: asked.account,
		}})
	}
	if asked.shareProcesses {
		rights = append(rights, Right{v1beta1.AnnotationSidecarSetShareProcesses, authorizationv1.ResourceAttributes{
			Verb: verbShareProcesses, Group: v1beta1.Group, Version: v1beta1.GroupVersion().Version, Resource: "sidecarsets", Name: set.Name,
		}})
	}
	return rights
}

// injected returns the part of the spec that determines what new pods get, and which pods.
func injected(set *v1beta1.SidecarSet) v1beta1.SidecarSetSpec {
	spec := set.Spec
	spec.UpdateStrategy, spec.RevisionHistoryLimit, spec.InjectionStrategy.Paused = v1beta1.SidecarSetUpdateStrategy{}, nil, false
	return spec
}
