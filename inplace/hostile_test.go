package inplace_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/inplace"
	"github.com/refit-project/refit/inplace/plan"
	"github.com/refit-project/refit/inplace/plan/plantest"
	"github.com/refit-project/refit/inplace/record"
	"github.com/refit-project/refit/inplace/reported"
	"github.com/refit-project/refit/internal/foreign"
	"github.com/refit-project/refit/test/kit/watchdog"
)

// quantities that make comparisons panic or last for hours.
var quantities = []string{"1e2147483647", "1e300000000", "1e-300000000", "10e2147483647", "1" + strings.Repeat("0", 100_000)}

func TestAnnotationWithAHostileQuantityIsNotReadable(t *testing.T) {
	t.Parallel()
	for _, quantity := range quantities {
		state := fmt.Sprintf(`{"revision":"x","nextContainerResources":{"app":{"requests":{"cpu":%q}}}}`, quantity)
		grace := fmt.Sprintf(`{"containerResources":{"app":{"limits":{"cpu":%q}}}}`, quantity)
		for name, annotations := range map[string]map[string]string{
			"of the pod":              {v1beta1.AnnotationInPlaceUpdateState: state},
			"of the pod, by v1alpha1": {v1beta1.LegacyAnnotationInPlaceUpdateState: state},
			"of a SidecarSet":         {v1beta1.AnnotationSidecarSetInPlaceUpdateState: `{"log":` + state + `}`},
			"until it is drained":     {v1beta1.AnnotationInPlaceUpdateState: `{}`, v1beta1.AnnotationInPlaceUpdateGrace: grace},
		} {
			t.Run(fmt.Sprintf("%.20s %s", quantity, name), func(t *testing.T) {
				t.Parallel()
				pod := newWorld(podOf(plantest.Template(), true), false).pod
				pod.Annotations = annotations
				watchdog.Watch(t, func() {
					recorded, err := record.Read(pod)
					if err == nil {
						recorded, err = record.ReadSidecars(pod, "log")
					}
					if !errors.Is(err, record.ErrMalformed) || !errors.Is(err, foreign.ErrUnreadable) || len(err.Error()) > 1024 {
						t.Errorf("read as %+v, %v", recorded, err)
						inplace.Next(pod, recorded, nil, time.Unix(1e9, 0))
					}
				})
			})
		}
	}
}

// The API server itself has no bound for exponents.
func TestPodWithAHostileQuantityIsNotUpdated(t *testing.T) {
	t.Parallel()
	for _, quantity := range []string{"1e2147483647", "1e300000000"} {
		for name, change := range map[string]func(*corev1.Pod, corev1.ResourceList){
			"spec": func(pod *corev1.Pod, list corev1.ResourceList) { pod.Spec.Containers[0].Resources.Requests = list },
			"allocated": func(pod *corev1.Pod, list corev1.ResourceList) {
				pod.Status.ContainerStatuses[0].AllocatedResources = list
			},
			"in use": func(pod *corev1.Pod, list corev1.ResourceList) {
				pod.Status.ContainerStatuses[0].Resources = &corev1.ResourceRequirements{Limits: list}
			},
		} {
			t.Run(quantity+" "+name, func(t *testing.T) {
				t.Parallel()
				pod := newWorld(podOf(plantest.Template(), false), false).pod
				change(pod, corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(quantity)})
				watchdog.Watch(t, func() {
					updated := plan.Template(pod)
					updated.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}
					update, err := plan.New(plan.Template(pod), updated, plan.Options{})
					if refused := (*plan.RefusedError)(nil); name == "spec" && !errors.As(err, &refused) {
						t.Errorf("planned: %v", err)
					}
					if _, err := inplace.Start(pod, &update, time.Unix(1e9, 0)); !errors.Is(err, foreign.ErrUnreadable) {
						t.Errorf("started: %v", err)
					}
					recorded := &record.Record{State: v1beta1.InPlaceUpdateState{UpdateResources: true, NextContainerResources: map[string]corev1.ResourceRequirements{
						"app": {Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}},
					}}}
					if d := inplace.Next(pod, recorded, nil, time.Unix(1e9, 0)); d.Reason != inplace.BlockedMalformed || !d.Final || !strings.Contains(d.Message, "not readable") {
						t.Errorf("got %+v", d)
					}
					if _, err := inplace.Withdraw(pod, plan.Changes{}, time.Unix(1e9, 0)); !errors.Is(err, foreign.ErrUnreadable) {
						t.Errorf("withdrawn: %v", err)
					}
					if inplace.Settled(pod, recorded, nil, time.Unix(1e9, 0), []string{"app"}, true) {
						t.Error("counted as settled")
					}
				})
			})
		}
	}
}

func TestManyRecordsInOneAnnotationAreNotReadable(t *testing.T) {
	t.Parallel()
	pod := newWorld(podOf(plantest.Template(), true), false).pod
	var entries []string
	for i := range 20_000 {
		entries = append(entries, fmt.Sprintf(`"s%d":{}`, i))
	}
	pod.Annotations[v1beta1.AnnotationSidecarSetInPlaceUpdateState] = "{" + strings.Join(entries, ",") + "}"
	watchdog.Watch(t, func() {
		if all := record.All(pod); len(all) != 0 {
			t.Errorf("%d records", len(all))
		}
	})
	pod.Annotations[v1beta1.AnnotationSidecarSetInPlaceUpdateState] = "{" + strings.Join(entries[:256], ",") + "}"
	if all := record.All(pod); len(all) != 256 {
		t.Errorf("%d records", len(all))
	}
}

// What it says decides whether a container is restarted.
func TestReportOfTheDaemonThatCannotBeReadEndsTheCommand(t *testing.T) {
	t.Parallel()
	w := newWorld(podOf(plantest.Template(), true), false)
	w.pod.Annotations[v1beta1.AnnotationRuntimeContainersMeta] = "{"
	if err := begin(w, 1, plan.Options{}); !errors.Is(err, reported.ErrMalformed) {
		t.Errorf("started: %v", err)
	}
	if _, err := inplace.Withdraw(w.pod, plan.Changes{}, w.now); !errors.Is(err, reported.ErrMalformed) {
		t.Errorf("withdrawn: %v", err)
	}
	w.pod.Annotations[v1beta1.AnnotationInPlaceUpdateState] = "{"
	if _, err := inplace.Withdraw(w.pod, plan.Changes{}, w.now); !errors.Is(err, record.ErrMalformed) {
		t.Errorf("withdrawn: %v", err)
	}
}

// FuzzAnnotations feeds foreign text: whatever it is, the answer is an error or a decision, and never a panic. Quantities and
// times come into their places in the annotations, which random bytes rarely do.
func FuzzAnnotations(f *testing.F) {
	const record1 = `{"revision":"x","updateTimestamp":"TIME","lastContainerStatuses":{"app":{"imageID":"i"}},"nextContainerResources":{"app":{"requests":{"cpu":"QUANTITY"}}}}`
	f.Add(record1, `{"containers":[{"name":"app"}]}`, `{"graceSeconds":5,"containerResources":{"app":{"limits":{"cpu":"QUANTITY"}}}}`, "100m", "2026-11-22T00:00:00Z")
	f.Add(`{"nextContainerImages":{"app":"b","gone":"c"},"refit":{"order":[["x"],[]]}}`, ``, `{"metaDataPatch":"e30="}`, "1", "2026-11-22T00:00:00Z")
	for _, quantity := range quantities[:4] {
		f.Add(record1, ``, ``, quantity, "2026-11-22T00:00:00Z")
	}
	f.Add(record1, ``, ``, "1Gi", "9999-12-31T23:59:59Z")
	f.Add(`{"containerBatchesRecord":[{"timestamp":"TIME","containers":["app"]}],"refit":{"written":"TIME"}}`, ``, ``, "1", "0001-01-01T00:00:00Z")
	f.Add(strings.Repeat(`{"refit":`, 10_000), strings.Repeat(`[`, 100_000), ``, "1", "")
	f.Fuzz(func(t *testing.T, state, meta, grace, quantity, at string) {
		fill := strings.NewReplacer("QUANTITY", quantity, "TIME", at)
		pod := newWorld(podOf(plantest.Template(), true), false).pod
		pod.Annotations[v1beta1.AnnotationInPlaceUpdateState] = fill.Replace(state)
		pod.Annotations[v1beta1.AnnotationSidecarSetInPlaceUpdateState] = `{"log":` + fill.Replace(state) + `}`
		pod.Annotations[v1beta1.AnnotationRuntimeContainersMeta] = meta
		if grace != "" {
			pod.Annotations[v1beta1.AnnotationInPlaceUpdateGrace] = fill.Replace(grace)
		}
		watchdog.Watch(t, func() { decide(t, pod) })
	})
}

func decide(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	kept, err := record.Read(pod)
	known, reportErr := reported.Read(pod)
	if err := errors.Join(err, reportErr); err != nil && !errors.Is(err, record.ErrMalformed) && !errors.Is(err, reported.ErrMalformed) {
		t.Errorf("%v: want ErrMalformed", err)
	}
	for _, recorded := range record.All(pod) {
		inplace.Next(pod, recorded, known, time.Unix(1e9, 0))
	}
	if err != nil || reportErr != nil {
		return
	}
	inplace.Next(pod, kept, known, time.Unix(1e9, 0))
	changed := plan.Change{Container: "app", Resources: &corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}}}
	if _, err := inplace.Withdraw(pod, plan.Changes{Containers: []plan.Change{changed}}, time.Unix(1e9, 0)); err != nil {
		t.Errorf("not withdrawn: %v", err)
	}
	if _, err := plan.New(plan.Template(pod), record.Wanted(pod, kept), plan.Options{}); err != nil {
		if refused := (*plan.RefusedError)(nil); !errors.As(err, &refused) {
			t.Errorf("%v: want a refusal", err)
		}
	}
}
