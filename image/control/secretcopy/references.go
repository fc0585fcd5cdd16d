package secretcopy

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
)

// maxReferences limits how many jobs a copy of a pull secret names: all annotations of an object together may have 256 KiB.
const maxReferences = 100

// references returns the jobs that a copy of a pull secret names, as "namespace/name". kruise-manager removes a copy
// that names none.
func references(secret *corev1.Secret) []string {
	return strings.FieldsFunc(secret.Annotations[v1beta1.AnnotationPullSecretReferences], func(r rune) bool { return r == ',' })
}

// refer adds a job to the names in a copy, and reports whether it was missing.
func refer(secret *corev1.Secret, job *v1beta1.ImagePullJob) bool {
	key, named := client.ObjectKeyFromObject(job).String(), references(secret)
	if len(named) >= maxReferences || slices.Contains(named, key) {
		return false
	}
	setReferences(secret, append(named, key))
	return true
}

// unrefer removes all jobs from the annotation that are not in the list, and reports whether it has removed any.
func unrefer(secret *corev1.Secret, jobs []string) bool {
	named := references(secret)
	left := slices.DeleteFunc(slices.Clone(named), func(key string) bool { return !slices.Contains(jobs, key) })
	if len(left) == len(named) {
		return false
	}
	setReferences(secret, left)
	return true
}

func setReferences(secret *corev1.Secret, jobs []string) {
	slices.Sort(jobs)
	if secret.Annotations == nil {
		secret.Annotations = map[string]string{}
	}
	secret.Annotations[v1beta1.AnnotationPullSecretReferences] = strings.Join(jobs, ",")
}
