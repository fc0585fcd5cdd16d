package admission_test

import (
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr/admission"
	"github.com/refit-project/refit/crr/crrtest"
)

// alone is a pod of which only container app, and its native sidecar, still run.
func alone(p corev1.RestartPolicy) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		policy(p)(pod)
		pod.Status.ContainerStatuses[1].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}
	}
}

// beside is a pod of which container log runs too.
func beside(p corev1.RestartPolicy) func(*corev1.Pod) { return policy(p) }

// An override holds where another container keeps the pod running, and is refused where it would end the pod.
func TestOverrideOfTheRestartPolicy(t *testing.T) {
	t.Parallel()
	never, onFailure := corev1.RestartPolicyNever, corev1.RestartPolicyOnFailure
	const ends = "no other container of the pod is running, so stopping it would end the pod"
	for name, tc := range map[string]struct {
		pod        func(*corev1.Pod)
		override   bool
		killed     bool // grace period 0
		containers []string
		refused    []string // words of the refusal; nil: admitted
	}{
		"Never":                           {pod: beside(never), refused: []string{"would end it", "while another container of the pod is running", "refit.dev/restart-policy: override"}},
		"Never, alone":                    {pod: alone(never), refused: []string{"container app cannot be restarted", "restartPolicy is Never", ends, "replace the pod"}},
		"Never, overridden":               {pod: beside(never), override: true},
		"Never, overridden, both":         {pod: beside(never), override: true, containers: []string{"app", "log"}},
		"Never, alone, overridden":        {pod: alone(never), override: true, refused: []string{ends, "also with annotation refit.dev/restart-policy: override"}},
		"Never, alone, overridden, kill":  {pod: alone(never), override: true, killed: true, refused: []string{ends}},
		"OnFailure, alone":                {pod: alone(onFailure)},
		"OnFailure, overridden":           {pod: beside(onFailure), override: true},
		"OnFailure, alone, overridden":    {pod: alone(onFailure), override: true, refused: []string{"restartPolicy is OnFailure", ends}},
		"OnFailure, alone, overridden, 0": {pod: alone(onFailure), override: true, killed: true},
		"Always, alone, overridden":       {pod: alone(corev1.RestartPolicyAlways), override: true},
		"native sidecar, overridden":      {pod: alone(never), override: true, containers: []string{"mesh"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.containers == nil {
				tc.containers = []string{"app"}
			}
			request, known := crrtest.UserRequest(tc.containers...), observed(crrtest.WebPod())
			tc.pod(known.Pod)
			if tc.override {
				annotate(v1beta1.AnnotationRestartPolicy, v1beta1.RestartPolicyOverride)(request)
			}
			if tc.killed {
				request.Spec.Strategy = &v1beta1.ContainerRecreateRequestStrategy{TerminationGracePeriodSeconds: new(int64(0))}
			}
			_, err := admission.Admit(request, known)
			if tc.refused == nil {
				if err != nil {
					t.Errorf("refused: %v", err)
				}
				return
			}
			refused(t, err, http.StatusBadRequest, "spec.containers[0].name", tc.refused...)
		})
	}
}
