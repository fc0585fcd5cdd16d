package change_test

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/inplace/cli/change"
	"github.com/refit-project/refit/inplace/plan"
)

// Another container may refer to the same annotation: it would be restarted, and the one that was named would keep its old value.
func TestEnvironmentOfAnInitContainerThatIsNamedIsRefused(t *testing.T) {
	t.Parallel()
	level := []corev1.EnvVar{{Name: "LEVEL", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['level']"}}}}
	pod := corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		InitContainers: []corev1.Container{{Name: "once", Env: level}},
		Containers:     []corev1.Container{{Name: "app", Env: level}},
	}}
	set, err := change.Env([]string{"once"}, []string{"LEVEL=debug"})
	if err != nil {
		t.Fatal(err)
	}
	var refused *plan.RefusedError
	if err := set(&pod); !errors.As(err, &refused) || refused.Refusals[0].Reason != plan.ReasonInitContainer || len(pod.Annotations) != 0 {
		t.Errorf("error %v, annotations %v", err, pod.Annotations)
	}
}
