package output

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/refit-project/refit/internal/foreign"
	"github.com/refit-project/refit/internal/result"
)

// Output is one place that a result is written to: a Label, Annotation, Condition, Field, Markers, Event or Gauge.
type Output interface {
	// Validate returns all errors at once.
	Validate() error
	// edits returns the wanted members of an object; nothing for an output outside of objects.
	edits(result.Entry) []Edit
}

// Label writes Value, converted to a valid label value, as a label.
type Label struct {
	Object Object
	Key    string
}

// Validate implements Output.
func (l Label) Validate() error { return errors.Join(l.Object.Validate(), checkKey("label", l.Key)) }

func (l Label) edits(e result.Entry) []Edit {
	return []Edit{{Object: l.Object, Path: labelPath(l.Key), Want: result.LabelValue(e.Value)}}
}

// Annotation writes Value as an annotation.
type Annotation struct {
	Object Object
	Key    string
}

// Validate implements Output.
func (a Annotation) Validate() error {
	return errors.Join(a.Object.Validate(), checkKey("annotation", a.Key))
}

func (a Annotation) edits(e result.Entry) []Edit {
	return []Edit{{Object: a.Object, Path: annotationPath(a.Key), Want: foreign.Cut(e.Value, result.MaxValue)}}
}

// Condition writes a condition of a pod: Succeeded is True, Failed False, Unknown Unknown. It can be a readiness gate.
// Reason may be empty; NoCondition recognizes the condition by it.
type Condition struct {
	Object       Object
	Type, Reason string
}

// Validate implements Output. The conditions that kubelet and controllers write are refused.
func (c Condition) Validate() error {
	errs := []error{c.Object.Validate(), checkKey("condition type", c.Type)}
	if !c.Object.isPod() {
		errs = append(errs, fmt.Errorf("condition %s of %s: only pods have conditions here, use a field", c.Type, c.Object))
	}
	if result.NativeCondition(corev1.PodConditionType(c.Type)) {
		errs = append(errs, fmt.Errorf("condition %s: written by kubelet or a controller, choose a type of your own", c.Type))
	}
	return errors.Join(errs...)
}

func (c Condition) edits(e result.Entry) []Edit {
	status := map[result.State]corev1.ConditionStatus{result.Succeeded: corev1.ConditionTrue, result.Failed: corev1.ConditionFalse}[e.State]
	if status == "" {
		status = corev1.ConditionUnknown
	}
	return []Edit{{Object: c.Object, Path: []string{"status", "conditions", c.Type}, Condition: &WantedCondition{
		Type: c.Type, Status: string(status), Reason: c.Reason, Message: foreign.Cut(e.Message, result.MaxMessage), At: e.At,
	}}}
}

// NoCondition removes a condition of a pod for any entry, unless the condition has another reason, which means that someone
// else has written it.
type NoCondition Condition

// Validate implements Output.
func (c NoCondition) Validate() error { return Condition(c).Validate() }

func (c NoCondition) edits(result.Entry) []Edit {
	return []Edit{{Object: c.Object, Path: []string{"status", "conditions", c.Type}, Condition: &WantedCondition{Type: c.Type, Reason: c.Reason}}}
}

// FieldType is the JSON type of a field's value.
type FieldType string

// Types of a field. A value that cannot be converted to the type is not written: the field stays.
const (
	StringField FieldType = "string"
	NumberField FieldType = "number"
	BoolField   FieldType = "boolean"
)

// Field writes Value to a member of an object. A missing member is added with its parents.
type Field struct {
	Object Object
	// Pointer is a JSON Pointer (RFC 6901), such as /spec/opsState. It may go through arrays, by index.
	Pointer string
	// Subresource is "status" or empty.
	Subresource string
	// Type defaults to StringField.
	Type FieldType
}

// ConfigMapKey returns the field for one key of a ConfigMap.
func ConfigMapKey(namespace, name, key string) Field {
	return Field{Object: ConfigMap(namespace, name), Pointer: FormatPointer([]string{"data", key})}
}

// Validate implements Output.
func (f Field) Validate() error {
	errs := []error{f.Object.Validate()}
	_, err := ParsePointer(f.Pointer)
	errs = append(errs, err)
	if f.Subresource != "" && f.Subresource != "status" {
		errs = append(errs, fmt.Errorf("subresource %q: want status or none", f.Subresource))
	}
	if !slices.Contains([]FieldType{"", StringField, NumberField, BoolField}, f.Type) {
		errs = append(errs, fmt.Errorf("field type %q: want string, number or boolean", f.Type))
	}
	return errors.Join(errs...)
}

func (f Field) edits(e result.Entry) []Edit {
	path, err := ParsePointer(f.Pointer)
	if err != nil {
		return nil
	}
	var want any
	text := strings.TrimSpace(e.Value)
	switch f.Type {
	case NumberField:
		if n, err := strconv.ParseFloat(text, 64); err == nil {
			want = n
		}
	case BoolField:
		if b, err := strconv.ParseBool(text); err == nil {
			want = b
		}
	default:
		want = foreign.Cut(e.Value, result.MaxValue)
	}
	if want == nil {
		return nil
	}
	return []Edit{{Object: f.Object, Path: path, Subresource: f.Subresource, Want: want}}
}

// Event records an Event about Object when state, value or message have changed.
type Event struct {
	Object Object
	// Reason is put before the state: "HotUpdate" gives HotUpdateSucceeded and so on.
	Reason string
}

// Validate implements Output.
func (e Event) Validate() error {
	if e.Reason == "" {
		return errors.Join(e.Object.Validate(), errors.New("event: no reason"))
	}
	return e.Object.Validate()
}

func (Event) edits(result.Entry) []Edit { return nil }

// Gauge sets a metric to Value as a number. A value that is not a number removes the metric, because the previous number
// would be wrong.
type Gauge struct {
	Name string
}

// Validate implements Output.
func (g Gauge) Validate() error {
	if g.Name == "" || strings.Trim(g.Name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_:") != "" ||
		g.Name[0] >= '0' && g.Name[0] <= '9' {
		return fmt.Errorf("metric name %q: want letters, digits, colons and underscores", g.Name)
	}
	return nil
}

func (Gauge) edits(result.Entry) []Edit { return nil }

// Objects returns the objects that the outputs write to, each once for each subresource.
func Objects(outputs []Output) []Patch {
	var objects []Patch
	for _, t := range outputs {
		for _, e := range t.edits(result.Entry{State: result.Unknown, Value: "0"}) {
			p := Patch{Object: e.Object, Subresource: e.Subresource}
			if e.Object.isPod() {
				p.Subresource = "status"
			}
			if !slices.ContainsFunc(objects, func(o Patch) bool { return o.Object == p.Object && o.Subresource == p.Subresource }) {
				objects = append(objects, p)
			}
		}
	}
	return objects
}

func checkKey(kind, key string) error {
	if errs := validation.IsQualifiedName(key); len(errs) > 0 {
		return fmt.Errorf("%s %q: %s", kind, key, strings.Join(errs, "; "))
	}
	return nil
}

func labelPath(key string) []string      { return []string{"metadata", "labels", key} }
func annotationPath(key string) []string { return []string{"metadata", "annotations", key} }
