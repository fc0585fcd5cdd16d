package v1alpha1

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
)

// Bounds of AnnotationConditions. The API server takes 256 KiB of annotations per object; conditions that
// would use more than half of it are written with shortened messages.
const (
	conditionsBytes = 128 << 10
	messageBytes    = 1 << 10
	messageCut      = " [shortened for apps.kruise.io/v1alpha1]"
)

// ConvertTo writes src, a request of this version, into dst.
//
// Hand-off annotations become status fields. One that cannot be read stays an annotation of dst, where its
// writer can see it; it never makes a stored object unreadable. The error is for callers' interfaces and is nil.
func ConvertTo(src *ContainerRecreateRequest, dst *v1beta1.ContainerRecreateRequest) error {
	src = src.DeepCopy()
	dst.ObjectMeta = src.ObjectMeta
	dst.Spec = src.Spec
	dst.Status = v1beta1.ContainerRecreateRequestStatus{
		Phase:                   src.Status.Phase,
		CompletionTime:          src.Status.CompletionTime,
		Message:                 src.Status.Message,
		ContainerRecreateStates: src.Status.ContainerRecreateStates,
	}
	take := func(key string, read func(string) error) {
		value, ok := dst.Annotations[key]
		if ok && read(value) == nil {
			delete(dst.Annotations, key)
		}
	}
	take(v1beta1.AnnotationSyncContainerStatuses, func(value string) (err error) {
		dst.Status.ContainerStatusSnapshot, err = readList[v1beta1.ContainerStatusSnapshot](value)
		return err
	})
	take(v1beta1.AnnotationConditions, func(value string) (err error) {
		dst.Status.Conditions, err = readConditions(value)
		return err
	})
	if value, ok := dst.Annotations[v1beta1.AnnotationUnreadyAcquired]; !ok {
		dst.Status.Conditions = withoutGrace(dst.Status.Conditions)
	} else if since, err := time.Parse(time.RFC3339, value); err == nil {
		dst.Status.Conditions = withGrace(dst.Status.Conditions, metav1.NewTime(since.UTC().Truncate(time.Second)))
		delete(dst.Annotations, v1beta1.AnnotationUnreadyAcquired)
	}
	if len(dst.Annotations) == 0 {
		dst.Annotations = nil
	}
	return nil
}

// ConvertFrom writes src, a request of the stored version, into dst. It is the inverse of ConvertTo.
//
// An annotation of src under a key of the hand-off is replaced when the status has a value for it.
func ConvertFrom(src *v1beta1.ContainerRecreateRequest, dst *ContainerRecreateRequest) error {
	src = src.DeepCopy()
	dst.ObjectMeta = src.ObjectMeta
	dst.Spec = src.Spec
	dst.Status = ContainerRecreateRequestStatus{
		Phase:                   src.Status.Phase,
		CompletionTime:          src.Status.CompletionTime,
		Message:                 src.Status.Message,
		ContainerRecreateStates: src.Status.ContainerRecreateStates,
	}
	put := func(key, value string) {
		if dst.Annotations == nil {
			dst.Annotations = map[string]string{}
		}
		dst.Annotations[key] = value
	}
	if len(src.Status.ContainerStatusSnapshot) > 0 {
		value, err := json.Marshal(src.Status.ContainerStatusSnapshot)
		if err != nil {
			return fmt.Errorf("write annotation %s: %w", v1beta1.AnnotationSyncContainerStatuses, err)
		}
		put(v1beta1.AnnotationSyncContainerStatuses, string(value))
	}
	conditions := src.Status.Conditions
	if i := graceIndex(conditions); i >= 0 && conditions[i].Status == metav1.ConditionTrue {
		put(v1beta1.AnnotationUnreadyAcquired, conditions[i].LastTransitionTime.UTC().Format(time.RFC3339))
	}
	if !isGraceAlone(conditions) {
		value, err := writeConditions(conditions)
		if err != nil {
			return fmt.Errorf("write annotation %s: %w", v1beta1.AnnotationConditions, err)
		}
		put(v1beta1.AnnotationConditions, value)
	}
	return nil
}

// withoutGrace drops a true condition PreRecreateGrace: whoever removed the annotation of kruise-manager undid it.
func withoutGrace(conditions []metav1.Condition) []metav1.Condition {
	i := graceIndex(conditions)
	if i >= 0 && conditions[i].Status == metav1.ConditionTrue {
		return slices.Delete(conditions, i, i+1)
	}
	return conditions
}

// withGrace makes condition PreRecreateGrace agree with the annotation of kruise-manager, the time since which the
// pod has been not ready.
func withGrace(conditions []metav1.Condition, since metav1.Time) []metav1.Condition {
	i := graceIndex(conditions)
	if i < 0 {
		return append(conditions, grace(since))
	}
	if conditions[i].Status != metav1.ConditionTrue || !conditions[i].LastTransitionTime.Time.Equal(since.Time) {
		conditions[i] = grace(since)
	}
	return conditions
}

func grace(since metav1.Time) metav1.Condition {
	return metav1.Condition{
		Type: v1beta1.ConditionPreRecreateGrace, Status: metav1.ConditionTrue, LastTransitionTime: since,
		Reason: v1beta1.ReasonPreRecreateGrace, Message: v1beta1.MessagePreRecreateGrace,
	}
}

func graceIndex(conditions []metav1.Condition) int {
	return slices.IndexFunc(conditions, func(c metav1.Condition) bool { return c.Type == v1beta1.ConditionPreRecreateGrace })
}

// isGraceAlone reports whether the time in AnnotationUnreadyAcquired says all there is in conditions, as for every
// object that a kruise-manager made; AnnotationConditions is then not needed.
func isGraceAlone(conditions []metav1.Condition) bool {
	return len(conditions) == 0 || len(conditions) == 1 && conditions[0] == grace(conditions[0].LastTransitionTime)
}

// readList parses a JSON array; anything else, null included, is an error.
func readList[T any](value string) ([]T, error) {
	var list []T
	if err := json.Unmarshal([]byte(value), &list); err != nil {
		return nil, err
	}
	if list == nil {
		return nil, fmt.Errorf("not an array")
	}
	return list, nil
}

// readConditions also refuses what the stored version could not hold: too many conditions, two of one type.
func readConditions(value string) ([]metav1.Condition, error) {
	conditions, err := readList[metav1.Condition](value)
	if err != nil {
		return nil, err
	}
	if len(conditions) > v1beta1.MaxConditions {
		return nil, fmt.Errorf("%d conditions", len(conditions))
	}
	for i, c := range conditions {
		if c.Type == "" || slices.ContainsFunc(conditions[:i], func(b metav1.Condition) bool { return b.Type == c.Type }) {
			return nil, fmt.Errorf("condition type %q empty or twice", c.Type)
		}
	}
	return conditions, nil
}

func writeConditions(conditions []metav1.Condition) (string, error) {
	value, err := json.Marshal(conditions)
	if err != nil || len(value) <= conditionsBytes {
		return string(value), err
	}
	for i := range conditions {
		conditions[i].Message = shorten(conditions[i].Message)
	}
	value, err = json.Marshal(conditions)
	return string(value), err
}

func shorten(message string) string {
	if len(message) <= messageBytes {
		return message
	}
	end := messageBytes
	for end > 0 && !utf8.RuneStart(message[end]) {
		end--
	}
	return message[:end] + messageCut
}
