package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Group is the API group of Refit.
const Group = "refit.dev"

// GroupVersion returns refit.dev/v1alpha1.
func GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: Group, Version: "v1alpha1"}
}

// AddToScheme registers the types of this package, and the meta types that every group needs, with s. It is a function and
// not a scheme builder so that nothing happens on import.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion(), &RestartRollout{}, &RestartRolloutList{}, &RestartSchedule{}, &RestartScheduleList{}, &RestartTrigger{}, &RestartTriggerList{},
		&InPlaceUpdatePolicy{}, &InPlaceUpdatePolicyList{})
	metav1.AddToGroupVersion(s, GroupVersion())
	return nil
}
