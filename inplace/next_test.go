package inplace_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/inplace"
	"github.com/refit-project/refit/inplace/plan"
	"github.com/refit-project/refit/inplace/plan/plantest"
	"github.com/refit-project/refit/inplace/reported"
)

func podOf(template *corev1.PodTemplateSpec, gate bool) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: *template.ObjectMeta.DeepCopy(), Spec: *template.Spec.DeepCopy()}
	pod.Name, pod.Namespace = "web", "demo"
	if gate {
		pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: v1beta1.ReadinessGateInPlaceUpdateReady}}
	}
	return pod
}

// changes are picked by bits.
var changes = []func(*corev1.Pod){
	func(pod *corev1.Pod) { pod.Spec.Containers[0].Image = "app:2" },
	func(pod *corev1.Pod) { pod.Spec.Containers[1].Image = "log:2" },
	func(pod *corev1.Pod) { pod.Spec.InitContainers[1].Image = "mesh:2" },
	func(pod *corev1.Pod) { pod.Annotations["config"] = "two" },
	func(pod *corev1.Pod) { pod.Labels["tier"] = "db" },
	func(pod *corev1.Pod) { pod.Labels["plain"] = "x" },
	func(pod *corev1.Pod) { pod.Spec.Containers[0].Resources = plantest.Resources("200m", "") },
}

func begin(w *world, bits int, options plan.Options) error {
	wanted := w.pod.DeepCopy()
	for i, change := range changes {
		if bits&(1<<i) != 0 {
			change(wanted)
		}
	}
	update, err := plan.New(plan.Template(w.pod), plan.Template(wanted), options)
	if err != nil {
		return err
	}
	return w.begin(&update)
}

// begin makes the first steps of an update.
func (w *world) begin(update *plan.Update) error {
	for {
		step, err := inplace.Start(w.pod, update, w.now)
		if err != nil {
			return err
		}
		if _, err = inplace.Apply(context.Background(), w, w.pod, step); err != nil || step.Kind != inplace.StepDrain {
			return err
		}
	}
}

// truth says what of the pod is not as its spec wants it.
func (w *world) truth() error {
	w.seen = w.pod.DeepCopy()
	for _, container := range w.running() {
		instance := w.instances[container.Name]
		if !instance.running {
			return fmt.Errorf("container %s does not run", container.Name)
		}
		if instance.image != container.Image {
			return fmt.Errorf("container %s runs %s, not %s", container.Name, instance.image, container.Image)
		}
		if instance.environment != reported.ExpectedEnvHash(&container, w.pod) {
			return fmt.Errorf("container %s has an old environment", container.Name)
		}
	}
	return nil
}

// wanted says what of the update the spec does not have.
func (w *world) wanted(bits int) error {
	wanted := w.pod.DeepCopy()
	for i, change := range changes {
		if bits&(1<<i) != 0 {
			change(wanted)
		}
	}
	_, err := plan.New(plan.Template(w.pod), plan.Template(wanted), plan.Options{})
	var refused *plan.RefusedError
	if errors.As(err, &refused) && refused.Has(plan.ReasonNoChange) {
		return nil
	}
	return fmt.Errorf("the pod is not as it was to be: %w", err)
}

// interleave lets kubelet, the daemon, crashes and the updater act in a random order, with pods read late, and images that
// cannot be pulled for a while. Then all goes well, and the update has to end.
func interleave(seed uint64, bits int, gate, reports bool, crashes int) error {
	random := rand.New(rand.NewPCG(seed, 1))
	w := newWorld(podOf(plantest.Template(), gate), reports)
	for _, image := range []string{"app:1", "log:1", "mesh:1"} {
		w.pulls[image] = true
	}
	if err := begin(w, bits, plan.Options{DrainSeconds: int32(random.IntN(3))}); err != nil {
		return err
	}
	old := w.pod.DeepCopy()
	const rough, calm = 150, 400
	for round := range rough + calm {
		w.now = w.now.Add(300 * time.Millisecond)
		if round == rough {
			for _, image := range []string{"app:2", "log:2", "mesh:2"} {
				w.pulls[image] = true
			}
		}
		switch choice := random.IntN(12); {
		case choice < 1:
			w.see()
		case choice < 3:
			w.act()
		case choice < 5:
			w.report()
		case choice < 6:
			w.publish()
		case choice < 7:
			w.enforce()
		case choice < 8 && round < rough && crashes > 0:
			w.crash(random)
			crashes--
		case choice < 9:
			old = w.pod.DeepCopy()
		default:
			pod := w.pod
			if choice == 11 {
				pod = old
			}
			decision, err := w.next(pod.DeepCopy())
			if err != nil {
				return err
			}
			// A pod that is read late may truly have been done then; the current one has to be.
			if decision.Kind == inplace.KindDone && pod == w.pod {
				if err := errors.Join(w.wanted(bits), w.settled()); err != nil {
					return fmt.Errorf("round %d: done early: %w", round, err)
				}
				if len(w.rules) > 0 {
					return errors.New(strings.Join(w.rules, "; "))
				}
				return nil
			}
		}
	}
	decision, err := w.next(w.pod.DeepCopy())
	return fmt.Errorf("never ends: %s %s %s, %w", decision.Kind, decision.Reason, decision.Message, err)
}

// settled is the truth, except for a container that has crashed without anybody being able to know it yet.
func (w *world) settled() error {
	for _, instance := range w.instances {
		instance.running = true
	}
	return w.truth()
}

func TestNextEndsAndIsNeverDoneEarly(t *testing.T) {
	t.Parallel()
	step := 1
	if testing.Short() {
		step = 17
	}
	for bits := 1; bits < 1<<len(changes); bits += step {
		for seed := range uint64(4) {
			gate, reports := seed%2 == 0, seed < 2
			crashes := 3
			if !reports {
				crashes = 0 // a crash cannot be told from kubelet's restart without reports, for environments
			}
			if err := interleave(seed, bits, gate, reports, crashes); err != nil {
				t.Fatalf("changes %b, seed %d, gate %v, reports %v: %v", bits, seed, gate, reports, err)
			}
		}
	}
}

func FuzzNext(f *testing.F) {
	f.Add(uint64(1), uint8(127), true, true)
	f.Add(uint64(2), uint8(3), false, false)
	f.Fuzz(func(t *testing.T, seed uint64, bits uint8, gate, reports bool) {
		mask := int(bits) & (1<<len(changes) - 1)
		if mask == 0 {
			return
		}
		crashes := 0
		if reports {
			crashes = 5
		}
		if err := interleave(seed, mask, gate, reports, crashes); err != nil {
			t.Fatal(err)
		}
	})
}

func TestNextReportsWhatBlocks(t *testing.T) {
	t.Parallel()
	finished := metav1.NewTime(time.Unix(1e9-10, 0))
	for name, tt := range map[string]struct {
		bits   int
		change func(*corev1.Pod)
		reason string
		final  bool
		again  time.Duration
	}{
		"the image cannot be pulled": {1, func(pod *corev1.Pod) {
			pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "Back-off pulling image"}}
		}, "ImagePullBackOff", false, 0},
		"the image's name is invalid": {1, func(pod *corev1.Pod) {
			pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "InvalidImageName"}}
		}, "InvalidImageName", true, 0},
		"the new container crashes": {1, func(pod *corev1.Pod) {
			pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off 40s restarting failed container"}}
			pod.Status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{FinishedAt: finished}
		}, "CrashLoopBackOff", false, 30 * time.Second},
		"the container has ended for good": {1, func(pod *corev1.Pod) {
			pod.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
			pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}
		}, inplace.BlockedNotRestarted, true, 0},
		"the node has no room now": {64, func(pod *corev1.Pod) {
			pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodResizePending, Reason: corev1.PodReasonDeferred, Message: "not now"})
		}, corev1.PodReasonDeferred, false, 0},
		"the node never has room": {64, func(pod *corev1.Pod) {
			pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodResizePending, Reason: corev1.PodReasonInfeasible})
		}, corev1.PodReasonInfeasible, true, 0},
		"the pod is being deleted": {1, func(pod *corev1.Pod) { pod.DeletionTimestamp = &finished }, inplace.BlockedPodEnded, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(podOf(plantest.Template(), false), false)
			if err := begin(w, tt.bits, plan.Options{}); err != nil {
				t.Fatal(err)
			}
			if _, err := w.next(w.pod); err != nil { // a resize is written after its record
				t.Fatal(err)
			}
			w.seen = w.pod.DeepCopy()
			w.report()
			tt.change(w.pod)
			decision, err := w.next(w.pod)
			if err != nil || decision.Kind != inplace.KindBlocked || decision.Reason != tt.reason || decision.Final != tt.final {
				t.Errorf("%+v, %v; want blocked by %s", decision, err, tt.reason)
			}
			if tt.again > 0 && !decision.Again.Equal(w.now.Add(tt.again)) {
				t.Errorf("again at %s, want in %s", decision.Again, tt.again)
			}
		})
	}
}
