// Package render prints what SidecarSets would inject into a pod, and why or why not, without a cluster. It calls the
// same functions as the webhook, and decides nothing.
package render

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/pmezard/go-difflib/difflib"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/sidecarset/admission"
	"github.com/refit-project/refit/sidecarset/choice"
	"github.com/refit-project/refit/sidecarset/inject"
	"github.com/refit-project/refit/sidecarset/match"
	"github.com/refit-project/refit/sidecarset/podfields"
)

// ErrRefused means that the pod would be refused.
var ErrRefused = errors.New("the pod would be refused")

// Print writes the effect on the pod: a line for each SidecarSet, and the differences.
func Print(out io.Writer, in *Objects) error {
	if len(in.Pod) == 0 {
		return errors.New("the files have no Pod and no object with a pod template")
	}
	if len(in.SidecarSets) == 0 {
		return errors.New("the files have no SidecarSet")
	}
	var pod corev1.Pod
	if err := json.Unmarshal(in.Pod, &pod); err != nil {
		return fmt.Errorf("decode pod: %w", err)
	}
	namespace := cmp.Or(pod.Namespace, "default")
	var selected []*choice.Candidate
	slices.SortFunc(in.SidecarSets, func(a, b *v1beta1.SidecarSet) int { return strings.Compare(a.Name, b.Name) })
	for _, set := range in.SidecarSets {
		if errs := admission.Check(set, nil, others(set, in.SidecarSets)); len(errs) > 0 {
			fmt.Fprintf(out, "SidecarSet %s would be refused: %v\n", set.Name, field.ErrorList(errs).ToAggregate())
			continue
		}
		selector, err := match.NewSelector(&set.Spec)
		if err != nil {
			return err
		}
		if reason := notSelected(set, &selector, &pod, namespace, in.Namespaces); reason != "" {
			fmt.Fprintf(out, "SidecarSet %s: not injected: %s\n", set.Name, reason)
			continue
		}
		c := &choice.Candidate{SidecarSet: set, Selector: selector}
		c.Latest, c.Err = inject.Compile(set, "")
		selected = append(selected, c)
	}
	key := namespace + "/" + cmp.Or(pod.Name, pod.GenerateName)
	plan, warnings, err := choice.Choose(choice.Subject{Labels: pod.Labels, Annotations: pod.Annotations, Key: key}, selected)
	if err != nil {
		return refusal(err)
	}
	result, err := podfields.Inject(in.Pod, plan, selected, time.Now())
	if err != nil {
		return refusal(err)
	}
	report(out, in.SidecarSets, plan, append(warnings, result.Warnings...))
	return difference(out, in.Pod, result.Patch)
}

func refusal(err error) error {
	var refused *inject.Refusal
	if errors.As(err, &refused) {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return err
}

func others(set *v1beta1.SidecarSet, all []*v1beta1.SidecarSet) []*v1beta1.SidecarSet {
	return slices.DeleteFunc(slices.Clone(all), func(other *v1beta1.SidecarSet) bool { return other.Name == set.Name })
}

// notSelected returns why a SidecarSet does not select the pod, or "".
func notSelected(set *v1beta1.SidecarSet, selector *match.Selector, pod *corev1.Pod, namespace string, namespaces map[string]map[string]string) string {
	labels, known := namespaces[namespace]
	switch {
	case !choice.Active(set):
		return "spec.injectionStrategy.paused"
	case !selector.Pod(pod.Labels):
		return "spec.selector does not select the labels of the pod"
	case selector.NeedsNamespace() && !known:
		return "spec.namespaceSelector depends on the labels of namespace " + namespace + "; add the Namespace to the files"
	case !selector.Namespace(namespace, labels):
		return "it does not select namespace " + namespace
	}
	return ""
}

func report(out io.Writer, sets []*v1beta1.SidecarSet, plan inject.Plan, warnings []string) {
	for _, set := range plan.Sets {
		fmt.Fprintf(out, "SidecarSet %s: injected\n", set.Name())
	}
	for _, set := range sets {
		if reason, ok := plan.Skipped[set.Name]; ok {
			fmt.Fprintf(out, "SidecarSet %s: not injected: %s\n", set.Name, reason)
		}
		if set.Spec.InjectionStrategy.Revision != nil {
			fmt.Fprintf(out, "SidecarSet %s: shown with its spec; a cluster may have the revision of spec.injectionStrategy.revision\n", set.Name)
		}
	}
	for _, name := range plan.Keep {
		fmt.Fprintf(out, "SidecarSet %s: left to a MutatingAdmissionPolicy by spec.injectionStrategy.engine\n", name)
	}
	for _, warning := range warnings {
		fmt.Fprintf(out, "warning: %s\n", warning)
	}
}

func difference(out io.Writer, pod []byte, operations []inject.Operation) error {
	if len(operations) == 0 {
		_, err := fmt.Fprintln(out, "the pod stays as it is")
		return err
	}
	text, err := json.Marshal(operations)
	if err != nil {
		return fmt.Errorf("encode patch: %w", err)
	}
	patch, err := jsonpatch.DecodePatch(text)
	if err != nil {
		return fmt.Errorf("decode patch: %w", err)
	}
	patched, err := patch.Apply(pod)
	if err != nil {
		return fmt.Errorf("apply patch: %w", err)
	}
	before, errBefore := yaml.JSONToYAML(pod)
	after, errAfter := yaml.JSONToYAML(patched)
	if err := errors.Join(errBefore, errAfter); err != nil {
		return fmt.Errorf("write YAML: %w", err)
	}
	return difflib.WriteUnifiedDiff(out, difflib.UnifiedDiff{
		A: difflib.SplitLines(string(before)), B: difflib.SplitLines(string(after)), FromFile: "pod", ToFile: "pod with sidecars", Context: 3,
	})
}
