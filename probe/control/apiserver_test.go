package control

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/internal/cache"
	"github.com/refit-project/refit/internal/managedfields"
)

// apiServer is a fake API server that records writes, and the access of reconcilers to it.
type apiServer struct {
	client.Client
	*api
	t      testing.TB
	writes []string
	patch  string // the last one
	events *events.FakeRecorder
	pruned bool // the CRD of markers is OpenKruise's, which has no conditions
	// rewritten are the pods whose fields are to be computed again.
	rewritten []string
	// refuse is an admission policy for pods; nil: there is none.
	refuse func(pod *corev1.Pod) error
	// records of what was applied, by pod.
	records map[string]metav1.ManagedFieldsEntry
}

func newAPIServer(t testing.TB, objects ...client.Object) *apiServer {
	t.Helper()
	w := &apiServer{t: t, events: events.NewFakeRecorder(10), records: map[string]metav1.ManagedFieldsEntry{}}
	noted := func(verb string, object client.Object) { w.writes = append(w.writes, verb+" "+object.GetName()) }
	w.Client = fake.NewClientBuilder().WithScheme(testScheme(t)).WithObjects(objects...).
		WithStatusSubresource(&v1alpha1.PodProbeMarker{}, &v1alpha1.NodePodProbe{}).WithIndex(&corev1.Pod{}, cache.PodsByNode, cache.NodeOfPod).
		WithInterceptorFuncs(interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
				noted("create", o)
				return c.Create(ctx, o, opts...)
			},
			Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
				noted("patch", o)
				text, err := p.Data(o)
				if err != nil {
					return err
				}
				w.patch = string(text)
				return c.Patch(ctx, o, p, opts...)
			},
			Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
				noted("delete", o)
				return c.Delete(ctx, o, opts...)
			},
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
				noted("patch "+sub, o)
				if marker, ok := o.(*v1alpha1.PodProbeMarker); ok && w.pruned {
					marker.Status.Conditions = nil
				}
				return c.SubResource(sub).Patch(ctx, o, p, opts...)
			},
			SubResourceApply: func(ctx context.Context, c client.Client, sub string, a runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
				dryRun := len((&client.SubResourceApplyOptions{}).ApplyOpts(opts).DryRun) > 0
				if !dryRun {
					w.writes = append(w.writes, "apply "+sub+" "+a.(metav1.Object).GetName())
				}
				return w.apply(ctx, c, a, dryRun)
			},
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
				err := c.Get(ctx, key, o, opts...)
				if record, ok := w.records[key.Name]; ok {
					o.SetManagedFields([]metav1.ManagedFieldsEntry{record})
				}
				return err
			},
		}).Build()
	w.api = w.nextLeader()
	return w
}

// nextLeader is the access of a manager that has just started.
func (w *apiServer) nextLeader() *api {
	return &api{
		client: w.Client, live: w.Client, nodes: cache.NewNodes(w.Client, w.Client), recorder: w.events, now: func() time.Time { return noon }, log: slog.New(slog.DiscardHandler),
		writes:  prometheus.NewCounterVec(prometheus.CounterOpts{Name: "writes"}, []string{"resource"}),
		rewrite: func(pod types.NamespacedName) { w.rewritten = append(w.rewritten, pod.Name) },
	}
}

// apply does what the API server does for probe results. The fake client cannot: it keeps metadata out of what goes through the status,
// and takes for applied what was there before.
func (w *apiServer) apply(ctx context.Context, c client.Client, config runtime.ApplyConfiguration, dryRun bool) error {
	content, err := json.Marshal(config)
	if err != nil {
		return err
	}
	var sent corev1.Pod
	if err := json.Unmarshal(content, &sent); err != nil {
		return err
	}
	pod := &corev1.Pod{}
	if err := w.Get(ctx, client.ObjectKeyFromObject(&sent), pod); err != nil {
		return err
	}
	if sent.UID != "" && sent.UID != pod.UID {
		return apierrors.NewConflict(corev1.Resource("pods"), pod.Name, nil)
	}
	owned := managedfields.OwnedBy(pod)
	fields := [3]map[string]any{{}, {}, {}}
	merge := func(there *map[string]string, owned map[string]bool, sent map[string]string, fields map[string]any) {
		merged := map[string]string{}
		for key, value := range *there {
			if !owned[key] {
				merged[key] = value
			}
		}
		for key, value := range sent {
			merged[key], fields["f:"+key] = value, struct{}{}
		}
		*there = merged
	}
	merge(&pod.Labels, owned.Labels, sent.Labels, fields[0])
	merge(&pod.Annotations, owned.Annotations, sent.Annotations, fields[1])
	conditions := slices.DeleteFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return owned.Conditions[string(c.Type)] })
	for _, condition := range sent.Status.Conditions {
		fields[2][`k:{"type":"`+string(condition.Type)+`"}`] = struct{}{}
		conditions = append(conditions, condition)
	}
	record, err := json.Marshal(map[string]any{
		"f:metadata": map[string]any{"f:labels": fields[0], "f:annotations": fields[1]}, "f:status": map[string]any{"f:conditions": fields[2]},
	})
	if err != nil {
		return err
	}
	pod.ManagedFields = nil
	if w.refuse != nil {
		if err := w.refuse(pod); err != nil {
			return err
		}
	}
	if dryRun {
		return nil
	}
	if err := c.Update(ctx, pod); err != nil {
		return err
	}
	pod.Status.Conditions = conditions
	if err := c.Status().Update(ctx, pod); err != nil {
		return err
	}
	w.records[pod.Name] = metav1.ManagedFieldsEntry{
		Manager: managedfields.FieldManager, Operation: metav1.ManagedFieldsOperationApply, Subresource: "status", FieldsV1: metav1.NewFieldsV1(string(record)),
	}
	config.(metav1.Object).SetResourceVersion(pod.ResourceVersion)
	return nil
}

// settle reconciles until nothing is written, and returns the writes.
func (w *apiServer) settle(r reconcile.Reconciler, namespace, name string) []string {
	w.t.Helper()
	w.writes = nil
	for range 10 {
		before := len(w.writes)
		if _, err := r.Reconcile(w.t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: namespace, Name: name}}); err != nil {
			w.t.Fatal(err)
		}
		if len(w.writes) == before {
			return slices.Clone(w.writes)
		}
	}
	w.t.Fatalf("never done: %q", w.writes)
	return nil
}

// writing calls a Destination where a Reconciler is expected.
type writing struct{ *podDestination }

// Reconcile implements reconcile.Reconciler.
func (w writing) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	_, err := w.Write(ctx, request.NamespacedName)
	return ctrl.Result{}, err
}

// report writes the status of a NodePodProbe as a daemon would.
func (w *apiServer) report(statuses ...v1alpha1.PodProbeStatus) {
	w.t.Helper()
	node := &v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}
	if err := client.IgnoreAlreadyExists(w.Create(w.t.Context(), node)); err != nil {
		w.t.Fatal(err)
	}
	if err := w.Get(w.t.Context(), client.ObjectKey{Name: "node-1"}, node); err != nil {
		w.t.Fatal(err)
	}
	node.Status.PodProbeStatuses = statuses
	if err := w.Client.Status().Update(w.t.Context(), node); err != nil {
		w.t.Fatal(err)
	}
}

func (w *apiServer) remove(object client.Object) {
	w.t.Helper()
	if err := w.Delete(w.t.Context(), object); err != nil {
		w.t.Fatal(err)
	}
}

// probesOfNode lists the spec of the NodePodProbe of node-1.
func (w *apiServer) probesOfNode() []string {
	w.t.Helper()
	list := []string{}
	var node v1alpha1.NodePodProbe
	if err := w.Get(w.t.Context(), client.ObjectKey{Name: "node-1"}, &node); err != nil {
		return list
	}
	for _, pod := range node.Spec.PodProbes {
		for _, probe := range pod.Probes {
			list = append(list, pod.Name+" "+pod.IP+" "+probe.Name)
		}
	}
	return list
}

func (w *apiServer) podNamed(name string) *corev1.Pod {
	w.t.Helper()
	var pod corev1.Pod
	if err := w.Get(w.t.Context(), client.ObjectKey{Namespace: "shop", Name: name}, &pod); err != nil {
		w.t.Fatal(err)
	}
	return &pod
}
