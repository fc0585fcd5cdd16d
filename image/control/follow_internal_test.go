package control

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
)

// A daemon that tries again, or the next day, reads the copy.
func TestChangedPullSecretReachesTheCopyWhileAJobRuns(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		age   time.Duration // of the job, which has been pulled everywhere
		phase v1beta1.ImagePullPhase
		every time.Duration
	}{
		"soon after the beginning": {time.Minute, v1beta1.ImagePhaseSucceeded, 5 * time.Second},
		"when nothing is pulled":   {time.Hour, v1beta1.ImagePhaseSucceeded, time.Minute},
		"while a node pulls":       {12 * time.Minute, v1beta1.ImagePhasePulling, 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			source := credentials(corev1.SecretTypeDockerConfigJson, "{}")
			w := newWorld(t, node("a", nil), source, pullJob(withCredentials, func(j *v1beta1.ImagePullJob) { j.Spec.CompletionPolicy.Type = v1beta1.CompletionNever }))
			w.look()
			w.daemon("a", tc.phase)
			w.now = w.now.Add(tc.age)
			w.look()
			w.check(w.Get(t.Context(), client.ObjectKeyFromObject(source), source))
			source.Data[corev1.DockerConfigJsonKey] = []byte(`{"auths":{}}`)
			w.check(w.Update(t.Context(), source))
			look := func() time.Duration {
				t.Helper()
				result, err := (&jobs{w.api}).Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "shop", Name: "j"}})
				w.check(err)
				return result.RequeueAfter
			}
			if after := look(); after > tc.every || after < time.Second || string(w.copied().Data[corev1.DockerConfigJsonKey]) != "{}" {
				t.Errorf("another look after %s; the copy is %s at once", after, w.copied().Data)
			}
			w.now = w.now.Add(tc.every)
			if after := look(); after != tc.every || string(w.copied().Data[corev1.DockerConfigJsonKey]) != `{"auths":{}}` {
				t.Errorf("another look after %s; the copy is %s", after, w.copied().Data)
			}
		})
	}
}
