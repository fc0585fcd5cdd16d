package rollout

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr/requester"
)

// InvalidError is why a rollout is not admitted.
type InvalidError struct {
	Field   string // path of the field at fault, as in "spec.selector"
	Message string // the rule, and what to do about it
}

func (e *InvalidError) Error() string { return e.Field + ": " + e.Message }

func invalid(field, format string, args ...any) error {
	return &InvalidError{Field: field, Message: fmt.Sprintf(format, args...)}
}

const annotationsPath = "metadata.annotations"

// Admit returns a new rollout as it is to be stored: with the name of the user who creates it. It does not change its
// argument. The error is an *InvalidError. What needs no code is a rule of the CRD.
func Admit(rollout *v1alpha1.RestartRollout, user string) (*v1alpha1.RestartRollout, error) {
	if rollout.Spec.Selector != nil {
		if _, err := metav1.LabelSelectorAsSelector(rollout.Spec.Selector); err != nil {
			return nil, invalid("spec.selector", "%v", err)
		}
	}
	if err := checkReason(rollout); err != nil {
		return nil, err
	}
	out := rollout.DeepCopy()
	delete(out.Annotations, v1beta1.AnnotationRequestedBy)
	if name := requester.Printable(user); name != "" {
		metav1.SetMetaDataAnnotation(&out.ObjectMeta, v1beta1.AnnotationRequestedBy, name)
	}
	return out, nil
}

// AdmitUpdate decides about a change of a rollout. The error is an *InvalidError.
func AdmitUpdate(before, after *v1alpha1.RestartRollout) error {
	for _, key := range []string{v1beta1.AnnotationRequestedBy, v1beta1.AnnotationReason} {
		if before.Annotations[key] != after.Annotations[key] {
			return invalid(annotationsPath+"["+key+"]", "cannot be changed; create another RestartRollout")
		}
	}
	return nil
}

func checkReason(rollout *v1alpha1.RestartRollout) error {
	if reason := rollout.Annotations[v1beta1.AnnotationReason]; reason != requester.Printable(reason) {
		return invalid(annotationsPath+"["+v1beta1.AnnotationReason+"]", "must be one line of printable characters, at most %d bytes", v1beta1.MaxReason)
	}
	return nil
}
