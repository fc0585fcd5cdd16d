package doctor_test

import (
	"errors"
	"net"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/doctor"
)

// An object of a feature that is turned off has no status for ever.
func TestObjectsThatNothingProcessesAreFound(t *testing.T) {
	t.Parallel()
	flags := func(w *world, flags ...string) {
		w.objects["manager"].(*appsv1.Deployment).Spec.Template.Spec.Containers[0].Args = flags
	}
	kruise := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "kruise-system", Name: "kruise-controller-manager", Labels: map[string]string{"control-plane": "controller-manager"}}}
	for name, tc := range map[string]struct {
		change func(*world)
		result doctor.Result
		words  string
	}{
		"all features":           {func(*world) {}, doctor.OK, "all are turned on"},
		"no manager":             {func(w *world) { w.drop("manager") }, doctor.Skipped, "there is no refit-manager"},
		"a feature without use":  {func(w *world) { flags(w, "--restart-rollouts=false") }, doctor.OK, "restartRollouts"},
		"a rollout that goes on": {func(w *world) { w.add("r", &v1alpha1.RestartRollout{ObjectMeta: meta("shop", "web-x")}) }, doctor.OK, "all are turned on"},
		"a rollout": {func(w *world) {
			flags(w, "--restart-rollouts=false")
			w.add("r", &v1alpha1.RestartRollout{ObjectMeta: meta("shop", "web-x")})
		}, doctor.Failed, "nothing processes 1 RestartRollout, as shop/web-x: refit-manager has --restart-rollouts=false (manager.features.restartRollouts of the chart)"},
		"a rollout that has ended": {func(w *world) {
			flags(w, "--restart-rollouts=false")
			w.add("r", &v1alpha1.RestartRollout{ObjectMeta: meta("shop", "web-x"), Status: v1alpha1.RestartRolloutStatus{CompletionTime: new(metav1.Now())}})
		}, doctor.OK, "not needed"},
		"a schedule": {func(w *world) {
			flags(w, "--restart-rollouts=false")
			w.add("s", &v1alpha1.RestartSchedule{ObjectMeta: meta("shop", "nightly")})
		}, doctor.Failed, "RestartSchedule"},
		"SidecarSets": {func(w *world) {
			flags(w, "--sidecar-sets=false")
			w.add("a", &v1beta1.SidecarSet{ObjectMeta: meta("", "mesh")})
			w.add("b", &v1beta1.SidecarSet{ObjectMeta: meta("", "logs")})
		}, doctor.Failed, "nothing processes 2 SidecarSets, as logs:"},
		"a pull": {func(w *world) {
			flags(w, "--images=false")
			w.add("p", &v1beta1.ImagePullJob{ObjectMeta: meta("shop", "app")})
		}, doctor.Failed, "ImagePullJob"},
		"a pull of kruise-manager": {func(w *world) {
			flags(w, "--images=false", "--container-recreate-requests=false")
			w.add("kruise", kruise.DeepCopy())
			w.add("p", &v1beta1.ImagePullJob{ObjectMeta: meta("shop", "app")})
		}, doctor.OK, "images"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			tc.change(w)
			w.finds(t, "features", tc.result, tc.words)
		})
	}
}

// Each check printed the same error.
func TestOutageOfTheAPIServerIsOneFinding(t *testing.T) {
	t.Parallel()
	for _, err := range []error{&net.OpError{Op: "dial", Err: errors.New("connection refused")}, apierrors.NewUnauthorized("no"), apierrors.NewServiceUnavailable("later")} {
		w := newWorld(t)
		w.read["refit-manager"] = err
		findings := doctor.Examine(t.Context(), doctor.Config{API: w.client(t), System: "refit-system", Namespace: "shop", Now: now})
		if len(findings) != 1 || findings[0].Check != "API server" || findings[0].Result != doctor.Failed || !strings.Contains(findings[0].Message, err.Error()) {
			t.Errorf("%v: %+v", err, findings)
		}
	}
}
