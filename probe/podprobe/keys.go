package podprobe

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/internal/result"
)

func checkCondition(path *field.Path, condition string) field.ErrorList {
	if condition == "" {
		return nil
	}
	if result.NativeCondition(corev1.PodConditionType(condition)) {
		return field.ErrorList{field.Invalid(path, condition, "is written by kubelet or a controller; use a type of your own, for example example.com/idle")}
	}
	var errs field.ErrorList
	for _, problem := range validation.IsQualifiedName(condition) {
		errs = append(errs, field.Invalid(path, condition, problem))
	}
	return errs
}

func checkPolicy(path *field.Path, policy v1alpha1.ProbeMarkerPolicy, selected map[string]bool) field.ErrorList {
	var errs field.ErrorList
	if policy.State != v1alpha1.ProbeSucceeded && policy.State != v1alpha1.ProbeFailed {
		errs = append(errs, field.NotSupported(path.Child("state"), policy.State, []v1alpha1.ProbeState{v1alpha1.ProbeSucceeded, v1alpha1.ProbeFailed}))
	}
	if len(policy.Labels)+len(policy.Annotations) == 0 {
		errs = append(errs, field.Required(path, "labels or annotations must be given"))
	}
	errs = append(errs, metavalidation.ValidateLabels(policy.Labels, path.Child("labels"))...)
	errs = append(errs, apivalidation.ValidateAnnotations(policy.Annotations, path.Child("annotations"))...)
	for key := range policy.Labels {
		if selected[key] {
			errs = append(errs, field.Invalid(path.Child("labels").Key(key), key,
				"is used by the marker's selector: the pod would match in one state and not in the other"))
		}
		errs = append(errs, checkKey(path.Child("labels").Key(key), key)...)
	}
	for key := range policy.Annotations {
		errs = append(errs, checkKey(path.Child("annotations").Key(key), key)...)
	}
	slices.SortFunc(errs, func(a, b *field.Error) int { return strings.Compare(a.Field, b.Field) })
	return errs
}

// checkKey refuses labels and annotations that Kubernetes, OpenKruise and Refit use themselves. Keys that they define
// for users are allowed.
func checkKey(path *field.Path, key string) field.ErrorList {
	if ReservedKey(key) {
		return field.ErrorList{field.Invalid(path, key, "is reserved for Kubernetes, OpenKruise or Refit; use a key of your own, for example example.com/idle")}
	}
	return nil
}

// ReservedKey reports whether markers must not set a label or annotation.
func ReservedKey(key string) bool {
	if slices.Contains(allowedKeys(), key) {
		return false
	}
	domain, _, qualified := strings.Cut(key, "/")
	if !qualified {
		return slices.Contains([]string{"pod-template-hash", "pod-template-generation", "controller-revision-hash", "job-name", "controller-uid"}, key)
	}
	if domain == "app.kubernetes.io" || domain == "game.kruise.io" {
		return false
	}
	return slices.ContainsFunc([]string{"kubernetes.io", "k8s.io", "kruise.io", "refit.dev"}, func(owner string) bool {
		return domain == owner || strings.HasSuffix(domain, "."+owner)
	})
}

// allowedKeys returns the keys under reserved domains by which users say how readily a pod may be removed.
func allowedKeys() []string {
	return []string{
		"controller.kubernetes.io/pod-deletion-cost",
		"cluster-autoscaler.kubernetes.io/safe-to-evict",
		"descheduler.alpha.kubernetes.io/evict",
		"apps.kruise.io/specified-delete",
	}
}
