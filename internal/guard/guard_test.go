package guard_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-project/refit/internal/guard"
)

func pod(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("uid of " + name)}}
}

type world struct {
	*guard.Guard
	registry *prometheus.Registry
	log      bytes.Buffer
	told     []string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{registry: prometheus.NewRegistry()}
	faults := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "faults"}, []string{"where", "fault"})
	w.registry.MustRegister(faults)
	w.Guard = guard.New(guard.Config{
		Program: "refit-manager", Faults: faults, Logger: slog.New(slog.NewTextHandler(&w.log, nil)),
		Report: func(object guard.Object, message string) { w.told = append(w.told, object.String()+": "+message) },
	})
	return w
}

func (w *world) count(t *testing.T) int {
	t.Helper()
	families, err := w.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	total := 0.0
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			total += metric.GetCounter().GetValue()
		}
	}
	return int(total)
}

func TestAPanicIsCountedEachTimeAndToldOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for range 3 {
		err := w.Do("rollout", guard.Of(pod("web")), func() error { panic("planted") })
		if !guard.Is(err) || err.Error() != "panic: planted" {
			t.Errorf("got %v", err)
		}
	}
	if n := w.count(t); n != 3 {
		t.Errorf("counted %d times", n)
	}
	want := []string{"Pod shop/web: refit-manager cannot handle this object (rollout): panic: planted"}
	if diff := cmp.Diff(want, w.told); diff != "" {
		t.Error(diff)
	}
	if log := w.log.String(); strings.Count(log, "others are") != 1 || !strings.Contains(log, "guard_test.go") || !strings.Contains(log, "Pod shop/web") {
		t.Errorf("the log does not say where, or more than once: %s", log)
	}
	w.Try("rollout", guard.Of(pod("other")), func() { panic("planted") })
	if len(w.told) != 2 {
		t.Errorf("told %q", w.told)
	}
}

func TestTheFirstFaultIsAnIncrease(t *testing.T) {
	t.Parallel()
	faults := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "faults"}, []string{"where", "fault"})
	guard.New(guard.Config{Faults: faults, Places: []string{"rollout", "write"}})
	if n := testutil.CollectAndCount(faults); n != 4 { // a panic and a deadline at each place
		t.Errorf("%d series before any fault", n)
	}
}

func TestAnErrorIsNoFault(t *testing.T) {
	t.Parallel()
	w, failed := newWorld(t), errors.New("not found")
	if err := w.Do("rollout", guard.Of(pod("web")), func() error { return failed }); !errors.Is(err, failed) || guard.Is(err) {
		t.Errorf("got %v", err)
	}
	if w.count(t) != 0 || len(w.told) > 0 {
		t.Error("reported")
	}
}

// An attacker who causes a panic may choose its value.
func TestWhatIsSaidOfAPanicIsBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_ = w.Do("rollout", guard.Of(pod("web")), func() error { panic(strings.Repeat("x", 1<<16)) })
	if longest := 1024; len(w.told[0]) > longest {
		t.Errorf("an Event of %d bytes", len(w.told[0]))
	}
	var nobody *guard.Guard
	if err := nobody.Do("rollout", nil, func() error { panic(nil) }); !guard.Is(err) {
		t.Errorf("got %v", err)
	}
	if err := w.Do("rollout", guard.Of((*corev1.Pod)(nil)), func() error { panic("planted") }); !guard.Is(err) {
		t.Errorf("got %v", err)
	}
}

func TestOneItemThatPanicsIsLeftOutAndTheOthersAreHandled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	pods := []*corev1.Pod{pod("a"), pod("bad"), pod("b")}
	var handled []string
	left, err := guard.Sift(w.Guard, "podprobes", pods, guard.OfType, func(pods []*corev1.Pod) {
		handled = nil
		for _, pod := range pods {
			if pod.Name == "bad" {
				panic("planted")
			}
			handled = append(handled, pod.Name)
		}
	})
	if err != nil || len(left) != 1 || left[0].Name != "bad" || w.count(t) != 1 {
		t.Errorf("left %v, counted %d, %v", left, w.count(t), err)
	}
	if diff := cmp.Diff([]string{"a", "b"}, handled); diff != "" {
		t.Error(diff)
	}
	_, err = guard.Sift(w.Guard, "podprobes", pods, guard.OfType, func(pods []*corev1.Pod) {
		if len(pods) > 1 {
			panic("only together")
		}
	})
	if !guard.Is(err) {
		t.Errorf("a panic of all together: %v", err)
	}
}
