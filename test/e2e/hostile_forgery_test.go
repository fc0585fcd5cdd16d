package e2e_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
)

// word is the name of the attack without spaces.
func (a attacker) word() string {
	return strings.NewReplacer(", ", "-", " ", "-").Replace(a.attack)
}

// touches is a command line that leaves the name of the attack in the container in which it is executed.
func (a attacker) touches() string { return "echo " + a.word() + " >> " + touched }

// forged is an attack by a pod on the node of the victim, whose status is written again and again while more is done, because kubelet
// corrects it every 10 s. forgery is a JSON patch of the status.
func forged(forgery func(victim *corev1.Pod) string, change func(attacker, *corev1.Pod), more func(context.Context, attacker, *corev1.Pod) error) attack {
	return attack{do: func(ctx context.Context, a attacker) error {
		pod, err := a.runs(ctx, change)
		if err != nil {
			return fmt.Errorf("start a pod: %w", err)
		}
		defer a.removes(ctx, pod)
		ctx, stop := context.WithCancel(ctx)
		var writing sync.WaitGroup
		defer writing.Wait()
		defer stop()
		patch := client.RawPatch(types.JSONPatchType, []byte(forgery(a.victim)))
		if err := a.Status().Patch(ctx, pod.DeepCopy(), patch); err != nil {
			return fmt.Errorf("write status: %w", err)
		}
		writing.Go(func() {
			_ = until(ctx, canaryPatience, func(ctx context.Context) (bool, error) {
				_ = a.Status().Patch(ctx, pod.DeepCopy(), patch) // the next one may succeed
				return false, nil
			})
		})
		return more(ctx, a, pod)
	}}
}

// runs starts a pod on the node of the victim.
func (a attacker) runs(ctx context.Context, change func(attacker, *corev1.Pod)) (*corev1.Pod, error) {
	pod := on(a.victim.Spec.NodeName, (&fixture{namespace: a.own}).podOf("", shell("app", obedient)))
	pod.GenerateName, pod.Labels = "a-", map[string]string{"attack": a.word()}
	change(a, pod)
	if err := a.Create(ctx, pod); err != nil {
		return nil, err
	}
	return pod, until(ctx, canaryPatience, func(ctx context.Context) (bool, error) {
		err := a.Get(ctx, client.ObjectKeyFromObject(pod), pod)
		return status(pod, "app").State.Running != nil && pod.Status.PodIP != "", err
	})
}

// removes deletes an object of an attack at once, also when the context has ended. Whatever is left goes with the namespace.
func (a attacker) removes(ctx context.Context, object client.Object) {
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), attackPatience)
	defer cancel()
	_ = a.Delete(limited, object, client.GracePeriodSeconds(0))
}

func plain(attacker, *corev1.Pod) {}

// execHook and httpHook are preStop hooks.
func execHook(a attacker, pod *corev1.Pod) {
	hook := &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"sh", "-c", a.touches()}}}
	pod.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{PreStop: hook}
}

func httpHook(a attacker, pod *corev1.Pod) {
	hook := &corev1.LifecycleHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/" + a.word(), Port: intstr.FromInt32(victimPort)}}
	pod.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{PreStop: hook}
}

// withMetadata has a variable in the environment that the victim does not have, and the hook.
func withMetadata(a attacker, pod *corev1.Pod) {
	execHook(a, pod)
	pod.Annotations = map[string]string{"level": "debug"}
	pod.Spec.Containers[0] = level(pod.Spec.Containers[0])
	pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: v1beta1.ReadinessGateInPlaceUpdateReady}}
}

// unready says that an update in place has begun: then a container whose environment is outdated is stopped.
func unready(ctx context.Context, a attacker, pod *corev1.Pod) error {
	patch := fmt.Sprintf(`{"status":{"conditions":[{"type":%q,"status":"False"}]}}`, v1beta1.ReadinessGateInPlaceUpdateReady)
	if err := a.Status().Patch(ctx, pod.DeepCopy(), client.RawPatch(types.StrategicMergePatchType, []byte(patch))); err != nil {
		return fmt.Errorf("write condition: %w", err)
	}
	return whileItLasts(ctx, func(context.Context) error { return nil })
}

// whileItLasts looks again and again until the attack has lasted long enough.
func whileItLasts(ctx context.Context, look func(context.Context) error) error {
	ended := time.Now().Add(attackLasts)
	return until(ctx, canaryPatience, func(ctx context.Context) (bool, error) { return time.Now().After(ended), look(ctx) })
}

// probes has two probes run, and goes on for a while when there are results of the control, which nothing prevents. A probe that is sent to a
// port cannot succeed, since no pod of the attacker listens.
func probes(one, control func(attacker) corev1.ProbeHandler) func(context.Context, attacker, *corev1.Pod) error {
	return func(ctx context.Context, a attacker, pod *corev1.Pod) error {
		marker := &v1alpha1.PodProbeMarker{ObjectMeta: metav1.ObjectMeta{Namespace: a.own, GenerateName: "a-"}}
		marker.Spec.Selector = &metav1.LabelSelector{MatchLabels: pod.Labels}
		handler := one(a)
		marker.Spec.Probes = []v1alpha1.PodContainerProbe{probing("attack", "app", handler), probing("control", "app", control(a))}
		if err := a.Create(ctx, marker); err != nil {
			return fmt.Errorf("create PodProbeMarker: %w", err)
		}
		defer a.removes(ctx, marker)
		result := func(ctx context.Context, name string) (corev1.ConditionStatus, error) {
			is := &corev1.Pod{}
			err := a.Get(ctx, client.ObjectKeyFromObject(pod), is)
			return condition(is, corev1.PodConditionType(conditionOf(name))), err
		}
		err := until(ctx, canaryPatience, func(ctx context.Context) (bool, error) {
			is, err := result(ctx, "control")
			return is != "", err
		})
		if err != nil {
			return fmt.Errorf("wait for a result of the control: %w", err)
		}
		return whileItLasts(ctx, func(ctx context.Context) error {
			is, err := result(ctx, "attack")
			if err == nil && handler.Exec == nil && is == corev1.ConditionTrue {
				return fmt.Errorf("%w: a probe has succeeded at an address that is not the pod's", errWrong)
			}
			return err
		})
	}
}

// asks has the container restarted by a request, and waits until it is completed. A request with the ID of the victim's container, which
// is not completed, is created again until it has that, and goes on for a while.
func asks(ofVictim bool) func(context.Context, attacker, *corev1.Pod) error {
	return func(ctx context.Context, a attacker, pod *corev1.Pod) error {
		var r *request
		err := until(ctx, canaryPatience, func(ctx context.Context) (bool, error) {
			r = (&fixture{namespace: a.own}).newRequest("", pod.Name+"/app")
			r.GenerateName = "a-"
			if err := a.Create(ctx, r); err != nil {
				return false, err
			}
			return !ofVictim || r.Spec.Containers[0].StatusContext.ContainerID == status(a.victim, "app").ContainerID, nil
		})
		if err != nil {
			return fmt.Errorf("create request: %w", err)
		}
		ended := time.Now().Add(attackLasts)
		return until(ctx, canaryPatience, func(ctx context.Context) (bool, error) {
			err := a.Get(ctx, client.ObjectKeyFromObject(r), r)
			return r.Status.CompletionTime != nil || ofVictim && time.Now().After(ended), err
		})
	}
}
