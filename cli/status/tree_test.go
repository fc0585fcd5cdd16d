package status_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/cli/status"
	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/internal/table"
)

func rolloutNamed(namespace, name string, created int) *v1alpha1.RestartRollout {
	return rollout(func(r *v1alpha1.RestartRollout) {
		r.ObjectMeta = object(namespace, name, created)
		r.UID = types.UID("uid-of-" + name)
	})
}

func madeBy[T client.Object](object T, rollout string) T {
	object.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: v1alpha1.GroupVersion().String(), Kind: v1alpha1.KindRestartRollout, Name: rollout, UID: types.UID("uid-of-" + rollout), Controller: new(true),
	}})
	return object
}

func TestRequestsAreListedBelowTheRolloutThatHasMadeThem(t *testing.T) {
	t.Parallel()
	own := madeBy(rolloutNamed("shop", "web-b", -3), "web-b") // its own controller, which nobody but a user writes
	objects := []client.Object{
		rolloutNamed("shop", "web-a", -5), own,
		ended(madeBy(request("shop", "a-1", -4), "web-a"), crr.Outcome{}, -3), madeBy(request("shop", "a-2", -2), "web-a"),
		madeBy(request("shop", "b-1", -2), "web-b"), request("shop", "alone", -4),
		ended(madeBy(request("shop", "a-0", -90), "web-a"), crr.Outcome{}, -80), // longer ago than what is shown
		madeBy(request("shop", "orphan", -1), "deleted"),
		madeBy(request("other", "copied", -1), "web-a"), // an owner of another namespace is none
	}
	for name, tc := range map[string]struct{ namespace, format, want string }{
		"table": {"shop", "", `NAME                   TARGET           STATE            DONE   REQUESTED BY   AGE
restartrollout/web-a   deployment/web   MaxUnavailable   2/5    alice          5m
├─crr/a-1              pod/web-0        Succeeded        0/1    alice          4m
└─crr/a-2              pod/web-0        Waiting          0/1    alice          2m
crr/alone              pod/web-0        Waiting          0/1    alice          4m
restartrollout/web-b   deployment/web   MaxUnavailable   2/5    alice          3m
└─crr/b-1              pod/web-0        Waiting          0/1    alice          2m
crr/orphan             pod/web-0        Waiting          0/1    alice          60s
`},
		"all namespaces": {"", "", `NAMESPACE   NAME                   TARGET           STATE            DONE   REQUESTED BY   AGE
shop        restartrollout/web-a   deployment/web   MaxUnavailable   2/5    alice          5m
shop        ├─crr/a-1              pod/web-0        Succeeded        0/1    alice          4m
shop        └─crr/a-2              pod/web-0        Waiting          0/1    alice          2m
shop        crr/alone              pod/web-0        Waiting          0/1    alice          4m
shop        restartrollout/web-b   deployment/web   MaxUnavailable   2/5    alice          3m
shop        └─crr/b-1              pod/web-0        Waiting          0/1    alice          2m
other       crr/copied             pod/web-0        Waiting          0/1    alice          60s
shop        crr/orphan             pod/web-0        Waiting          0/1    alice          60s
`},
		"names do not change in other formats": {"shop", "name", `restartrollout.refit.dev/web-a
containerrecreaterequest.apps.kruise.io/a-1
containerrecreaterequest.apps.kruise.io/a-2
containerrecreaterequest.apps.kruise.io/alone
restartrollout.refit.dev/web-b
containerrecreaterequest.apps.kruise.io/b-1
containerrecreaterequest.apps.kruise.io/orphan
`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			stored := make([]client.Object, len(objects)) // the fake API server sets their versions
			for i, object := range objects {
				stored[i] = object.DeepCopyObject().(client.Object)
			}
			config := status.Config{API: cluster(t, stored...), Namespace: tc.namespace, Options: table.Options{Format: tc.format}, Since: time.Hour, Now: func() time.Time { return noon }}
			if err := status.Run(t.Context(), config, &out); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, out.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
