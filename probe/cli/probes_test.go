package cli_test

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/table"
	probecli "github.com/refit-project/refit/probe/cli"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func cluster(t *testing.T, mayReadNodes bool) client.Client {
	t.Helper()
	minute := metav1.NewTime(noon.Add(-time.Minute))
	node := &v1beta1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}
	node.Spec.PodProbes = []v1beta1.PodProbe{
		{Name: "web-0", Namespace: "shop", UID: "u", Probes: []v1beta1.ContainerProbe{{Name: "idle#state", ContainerName: "app"}, {Name: "idle#new", ContainerName: "app"}}},
		{Name: "db-0", Namespace: "other", UID: "v", Probes: []v1beta1.ContainerProbe{{Name: "lag#replica", ContainerName: "db"}}},
	}
	node.Status.PodProbeStatuses = []v1beta1.PodProbeStatus{
		{Name: "web-0", Namespace: "shop", UID: "before", ProbeStates: []v1beta1.ContainerProbeState{{Name: "idle#new", State: v1beta1.ProbeFailed}}},
		{Name: "web-0", Namespace: "shop", UID: "u", ProbeStates: []v1beta1.ContainerProbeState{{Name: "idle#state", State: v1beta1.ProbeSucceeded, LastTransitionTime: minute, Message: "idle\nsince noon"}}},
	}
	marker := &v1beta1.PodProbeMarker{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "idle"}}
	marker.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	marker.Spec.Probes = []v1beta1.PodContainerProbe{{Name: "state", ContainerName: "app", PodConditionType: "example.com/idle"}, {Name: "new", ContainerName: "app"}, {Name: "typo", ContainerName: "apps"}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-0", Labels: map[string]string{"app": "web"}}, Spec: corev1.PodSpec{NodeName: "node-1", Containers: []corev1.Container{{Name: "app"}}}}
	pod.Status.Conditions = []corev1.PodCondition{
		{Type: "example.com/idle", Status: corev1.ConditionTrue, LastTransitionTime: minute, Message: "idle"}, {Type: corev1.PodInitialized, Status: corev1.ConditionTrue},
	}
	virtual := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "games", Name: "gs-0", Labels: map[string]string{"app": "game"}, Annotations: map[string]string{v1beta1.AnnotationPodProbe: "[]"},
	}, Spec: corev1.PodSpec{NodeName: "virtual", Containers: []corev1.Container{{Name: "app"}}}}
	virtual.Status.Conditions = []corev1.PodCondition{
		{Type: "example.com/idle", Status: corev1.ConditionFalse, LastTransitionTime: minute},
		{Type: "example.com/late", Status: corev1.ConditionUnknown, LastTransitionTime: minute},
		{Type: "example.com/new", Status: corev1.ConditionFalse, Reason: "ProbeUnknown", LastTransitionTime: minute},
	}
	game := &v1beta1.PodProbeMarker{ObjectMeta: metav1.ObjectMeta{Namespace: "games", Name: "game"}}
	game.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "game"}}
	for _, name := range []string{"idle", "late", "new"} {
		game.Spec.Probes = append(game.Spec.Probes, v1beta1.PodContainerProbe{Name: name, ContainerName: "app", PodConditionType: "example.com/" + name})
	}
	game.Spec.Probes = append(game.Spec.Probes, v1beta1.PodContainerProbe{Name: "marks", ContainerName: "app"})
	kinds := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(kinds), v1beta1.AddToScheme(kinds)); err != nil {
		t.Fatal(err)
	}
	plain := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1"}}
	return fake.NewClientBuilder().WithScheme(kinds).WithObjects(node, marker, pod, game, virtual, plain).WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if _, nodes := list.(*v1beta1.NodePodProbeList); nodes && !mayReadNodes {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "nodepodprobes"}, "", errors.New("no"))
			}
			return c.List(ctx, list, opts...)
		},
	}).Build()
}

// A name that was mistyped looked like a pod without probes.
func TestProbesOfAPodThatDoesNotExistAreAnError(t *testing.T) {
	t.Parallel()
	for _, mayReadNodes := range []bool{true, false} {
		config := probecli.Config{API: cluster(t, mayReadNodes), Namespace: "shop", Pod: "nope", Now: func() time.Time { return noon }}
		var out bytes.Buffer
		if err := probecli.List(t.Context(), config, &out); !apierrors.IsNotFound(err) || out.Len() > 0 {
			t.Errorf("%v; said %q", err, out.String())
		}
	}
}

func TestList(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		mayReadNodes           bool
		namespace, pod, format string
		want                   string
	}{
		"of a namespace": {true, "shop", "", "", `POD     CONTAINER   MARKER   PROBE   STATE       FOR
web-0   app         idle     new     Unknown     -
web-0   app         idle     state   Succeeded   60s
web-0   apps        idle     typo    Unknown     -
`},
		"of all namespaces": {true, "", "", "wide", `NAMESPACE   POD     CONTAINER   MARKER   PROBE     STATE       FOR   NODE      MESSAGE
games       gs-0    app         game     idle      Failed      60s   virtual   
games       gs-0    app         game     late      Unknown     60s   virtual   
games       gs-0    app         game     new       Unknown     60s   virtual   
other       db-0    db          lag      replica   Unknown     -     node-1    
shop        web-0   app         idle     new       Unknown     -     node-1    
shop        web-0   app         idle     state     Succeeded   60s   node-1    idle ...
shop        web-0   apps        idle     typo      Unknown     -     node-1    pod web-0 has no container apps
`},
		"of a pod without": {true, "shop", "web-1", "", "there are no probes\n"},
		"without the right to read NodePodProbes": {false, "shop", "", "", `POD     CONTAINER   MARKER   PROBE   STATE       FOR
web-0   app         idle     new     ?           -
web-0   app         idle     state   Succeeded   60s
web-0   apps        idle     typo    Unknown     -
`},
		"names": {true, "", "", "name", "pod/gs-0\nnodepodprobe.apps.kruise.io/node-1\npod/web-0\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			config := probecli.Config{API: cluster(t, tc.mayReadNodes), Namespace: tc.namespace, Pod: tc.pod, Options: table.Options{Format: tc.format}, Now: func() time.Time { return noon }}
			if err := probecli.List(t.Context(), config, &out); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, out.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
