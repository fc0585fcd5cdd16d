package cli_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
)

// It said "at once" of every pod that was young, and did not know of what others had begun.
func TestDryRunCountsWhatRefitManagerCounts(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		prepare func(*fixture)
		first   string
	}{
		"young pods": {func(f *fixture) { f.config.MinReadySeconds = new(int32(20)) }, ""},
		"a request of somebody else": {func(f *fixture) {
			request := &v1beta1.ContainerRecreateRequest{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "by-hand"}}
			request.Spec.PodName = "web-abc-2"
			f.create(t, request)
		}, "web-abc-2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.config.DryRun, f.config.Rollout.MaxUnavailable = true, new(intstr.FromInt32(1))
			for _, name := range []string{"web-abc-1", "web-abc-2"} {
				f.ready(t, name)
			}
			tt.prepare(f)
			if err := run(t, f, "deployment/web"); err != nil {
				t.Fatal(err)
			}
			out := f.out.String()
			if strings.Count(out, "at once") > 1 || strings.Contains(out, "at once") && (tt.first == "" || !strings.Contains(out, "at once: pod "+tt.first)) {
				t.Errorf("%s", out)
			}
		})
	}
}

// create makes an object that nobody carries out.
func (f *fixture) create(t *testing.T, object client.Object) {
	t.Helper()
	finish := f.finish
	f.finish = func(client.Object) {}
	defer func() { f.finish = finish }()
	if err := f.config.API.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
}

// ready shows that a pod has just become ready.
func (f *fixture) ready(t *testing.T, name string) {
	t.Helper()
	var pod corev1.Pod
	err := f.config.API.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: name}, &pod)
	if err == nil {
		pod.Status.Conditions[0].LastTransitionTime = metav1.Now()
		err = f.config.API.Status().Update(t.Context(), &pod)
	}
	if err != nil {
		t.Fatal(err)
	}
}
