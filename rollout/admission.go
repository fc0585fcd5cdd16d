package rollout

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr/requester"
	"github.com/refit-project/refit/internal/foreign"
)

// InvalidError says why a rollout is not admitted.
type InvalidError struct {
	Field   string // path of the rejected field, for example "spec.selector"
	Message string // the rule, and how to comply with it
}

func (e *InvalidError) Error() string { return e.Field + ": " + e.Message }

func invalid(field, format string, args ...any) error {
	return &InvalidError{Field: field, Message: fmt.Sprintf(format, args...)}
}

const annotationsPath = "metadata.annotations"

// Requester is the user who creates a rollout.
type Requester struct {
	Name string // name of the user
	// Manager says that it is refit-manager, which creates rollouts for schedules and changed configuration on behalf
	// of users.
	Manager bool
}

// Admit returns a new rollout to store, with the name of the user who creates it. It does not change its argument. The
// error is an *InvalidError. Rules that need no code are in the CRD.
func Admit(rollout *v1alpha1.RestartRollout, user Requester) (*v1alpha1.RestartRollout, error) {
	if rollout.Spec.Selector != nil {
		if _, err := foreign.Selector(rollout.Spec.Selector); err != nil {
			return nil, invalid("spec.selector", "%v", err)
		}
	}
	if err := CheckReason(rollout); err != nil {
		return nil, err
	}
	out := rollout.DeepCopy()
	if !user.Manager {
		delete(out.Annotations, v1alpha1.AnnotationTrigger)
	}
	if !user.Manager || out.Annotations[v1beta1.AnnotationRequestedBy] == "" {
		SetRequester(out, user.Name)
	}
	return out, nil
}

// AdmitUpdate decides whether a change of a rollout is admitted. The error is an *InvalidError.
func AdmitUpdate(before, after *v1alpha1.RestartRollout, user Requester) error {
	fixed := []string{v1beta1.AnnotationRequestedBy, v1beta1.AnnotationReason, v1alpha1.AnnotationTrigger}
	if !user.Manager {
		fixed = append(fixed, v1alpha1.AnnotationFinished)
	}
	return CheckUnchanged(before, after, fixed...)
}

// SetRequester records who requests restarts, and replaces what the object said.
func SetRequester(object metav1.Object, user string) {
	annotations := object.GetAnnotations()
	delete(annotations, v1beta1.AnnotationRequestedBy)
	if name := requester.Printable(user); name != "" {
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[v1beta1.AnnotationRequestedBy] = name
	}
	object.SetAnnotations(annotations)
}

// CheckUnchanged refuses changes of annotations. The error is an *InvalidError.
func CheckUnchanged(before, after metav1.Object, annotations ...string) error {
	for _, key := range annotations {
		if before.GetAnnotations()[key] != after.GetAnnotations()[key] {
			return invalid(annotationsPath+"["+key+"]", "cannot be changed; create another object")
		}
	}
	return nil
}

// CheckReason refuses a reason that could forge log lines. The error is an *InvalidError.
func CheckReason(object metav1.Object) error {
	if reason := object.GetAnnotations()[v1beta1.AnnotationReason]; reason != requester.Printable(reason) {
		return invalid(annotationsPath+"["+v1beta1.AnnotationReason+"]", "%s", ReasonRule())
	}
	return nil
}

// ReasonRule is the rule that CheckReason checks.
func ReasonRule() string {
	return fmt.Sprintf("must be one line of printable characters, at most %d bytes", v1beta1.MaxReason)
}
