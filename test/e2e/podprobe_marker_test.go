package e2e_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1alpha1"
)

const deletionCost = "controller.kubernetes.io/pod-deletion-cost"

// server is the test application, which answers by the file /shared/state, beside a shell that writes it.
func (s *fixture) server(name string) *corev1.Pod {
	s.t.Helper()
	i := slices.IndexFunc(s.deploy.Images, func(image string) bool { return strings.Contains(image, "/testapp:") })
	if i < 0 {
		s.t.Skip("needs the image testapp: hack/images.sh --extra testapp=test/e2e/testapp")
	}
	app := corev1.Container{
		Name: "app", Image: s.deploy.Images[i], ImagePullPolicy: corev1.PullIfNotPresent,
		Args:         []string{"--http=:8080", "--tcp=:7000", "--grpc=:9000", "--state=/shared/state"},
		Ports:        []corev1.ContainerPort{{Name: "web", ContainerPort: 8080}},
		VolumeMounts: []corev1.VolumeMount{{Name: "shared", MountPath: "/shared"}},
	}
	pod := s.podOf(name, app, shell("sh", obedient))
	pod.Labels = map[string]string{"app": name}
	return pod
}

// probing is one probe, whose condition is e2e.refit.dev/NAME.
func probing(name, container string, handler corev1.ProbeHandler) v1alpha1.PodContainerProbe {
	p := v1alpha1.PodContainerProbe{Name: name, ContainerName: container, PodConditionType: conditionOf(name)}
	p.Probe.ProbeHandler = handler
	p.Probe.PeriodSeconds = 1
	p.Probe.TimeoutSeconds = 5
	return p
}

func conditionOf(name string) string { return "e2e.refit.dev/" + name }

func command(words ...string) corev1.ProbeHandler {
	return corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: words}}
}

// mark makes a marker for the pods with the label app.
func (s *fixture) mark(name, app string, probes ...v1alpha1.PodContainerProbe) *v1alpha1.PodProbeMarker {
	s.t.Helper()
	marker := &v1alpha1.PodProbeMarker{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.namespace}}
	marker.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
	marker.Spec.Probes = probes
	s.check(s.Create(s.t.Context(), marker), "make marker %s", name)
	return marker
}

// shows waits until the pod has conditions as given by "name=Status".
func (s *fixture) shows(pod string, want ...string) *corev1.Pod {
	s.t.Helper()
	began := time.Now()
	found := s.awaitPod(pod, fmt.Sprintf("to show %v", want), func(pod *corev1.Pod) bool {
		return !slices.ContainsFunc(want, func(w string) bool {
			name, status, _ := strings.Cut(w, "=")
			return string(condition(pod, corev1.PodConditionType(conditionOf(name)))) != status
		})
	})
	s.t.Logf("pod %s shows %v after %s", pod, want, time.Since(began).Round(time.Millisecond))
	return found
}

func messageOf(pod *corev1.Pod, name string) string {
	for _, c := range pod.Status.Conditions {
		if string(c.Type) == conditionOf(name) {
			return c.Message
		}
	}
	return ""
}

// TestProbesOfEveryKind has real servers say one thing and the other, with five probes on one container.
func TestProbesOfEveryKind(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	s.start(s.server("game"))
	idle := probing("exec", "app", command("/testapp", "state", "/shared/state"))
	idle.MarkerPolicy = []v1alpha1.ProbeMarkerPolicy{
		{State: v1alpha1.ProbeSucceeded, Labels: map[string]string{"game-state": "idle"}, Annotations: map[string]string{deletionCost: "-10"}},
		{State: v1alpha1.ProbeFailed, Labels: map[string]string{"game-state": "allocated"}, Annotations: map[string]string{deletionCost: "10"}},
	}
	s.mark("kinds", "game", idle,
		probing("http", "app", corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/state", Port: intstr.FromString("web")}}),
		probing("tcp", "app", corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(7000)}}),
		probing("grpc", "app", corev1.ProbeHandler{GRPC: &corev1.GRPCAction{Port: 9000}}),
		probing("other", "app", command("/testapp", "state", "/shared/other")))
	up := []string{"exec=True", "http=True", "tcp=True", "grpc=True", "other=True"}
	down := []string{"exec=False", "http=False", "tcp=False", "grpc=False", "other=True"}
	pod := s.shows("game", up...)
	if pod.Labels["game-state"] != "idle" || pod.Annotations[deletionCost] != "-10" || messageOf(pod, "http") != "up" {
		t.Errorf("labels %v, annotations %v, message of http %q", pod.Labels, pod.Annotations, messageOf(pod, "http"))
	}
	s.exec("game", "sh", "echo down > /shared/state")
	pod = s.shows("game", down...)
	if pod.Labels["game-state"] != "allocated" || pod.Annotations[deletionCost] != "10" || messageOf(pod, "grpc") != "NOT_SERVING" {
		t.Errorf("labels %v, annotations %v, message of grpc %q", pod.Labels, pod.Annotations, messageOf(pod, "grpc"))
	}
	s.awaitEvent("KruiseProbeFailed", "kinds#http", "503")
	s.exec("game", "sh", "echo up > /shared/state; echo down > /shared/other")
	s.shows("game", append(up[:4:4], "other=False")...)
	s.awaitEvent("KruiseProbeSucceeded", "kinds#tcp")
}

// TestProbeFollowsItsContainer lets the container end and come back.
func TestProbeFollowsItsContainer(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	s.start(s.server("game"))
	s.mark("life", "game", probing("alive", "sh", command("true")), probing("neighbour", "app", command("/testapp", "state", "/shared/state")))
	before := s.shows("game", "alive=True", "neighbour=True")
	// In the background, as the command would end with its container, and be repeated as if it had failed.
	s.exec("game", "sh", "(sleep 0.5; kill 1) >/dev/null 2>&1 &")
	s.awaitEvent("KruiseProbeFailed", "life#alive", "Container(sh) is Non-running")
	after := s.awaitPod("game", "to run its container again", func(pod *corev1.Pod) bool {
		return status(pod, "sh").RestartCount > status(before, "sh").RestartCount && status(pod, "sh").State.Running != nil
	})
	s.shows("game", "alive=True", "neighbour=True")
	s.untouched(after, "app")
}

// TestProbeChangesTakeEffect changes, renames and takes away what is asked.
func TestProbeChangesTakeEffect(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	s.start(s.podOf("game", shell("sh", obedient)))
	s.run("label", "pod", "game", "app=game")
	marked := probing("first", "sh", command("true"))
	marked.MarkerPolicy = []v1alpha1.ProbeMarkerPolicy{{State: v1alpha1.ProbeSucceeded, Labels: map[string]string{"first": "yes"}}}
	marker := s.mark("changing", "game", marked, probing("second", "sh", command("true")))
	s.shows("game", "first=True", "second=True")
	s.edit(marker, func() { marker.Spec.Probes[1].Probe.Exec.Command = []string{"false"} })
	s.shows("game", "first=True", "second=False")
	s.edit(marker, func() { marker.Spec.Probes = marker.Spec.Probes[:1] })
	s.shows("game", "first=True", "second=")
	s.run("label", "pod", "game", "app=another", "--overwrite")
	if pod := s.shows("game", "first="); pod.Labels["first"] != "" {
		t.Errorf("labels of a pod that is no longer selected: %v", pod.Labels)
	}
	s.run("label", "pod", "game", "app=game", "--overwrite")
	s.shows("game", "first=True")
	s.check(s.Delete(t.Context(), marker), "delete marker")
	if pod := s.shows("game", "first="); pod.Labels["first"] != "" {
		t.Errorf("labels after the marker: %v", pod.Labels)
	}
}

// TestHostileProbesDoNotAffectOthers has commands that hang, leave a child with their output open or write without end, and a
// server whose answer has no end, beside a probe that is to be punctual all the while.
func TestHostileProbesDoNotAffectOthers(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	s.start(s.server("game"))
	const punctual = 5 * time.Second
	web := func(path string) corev1.ProbeHandler {
		return corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromString("web")}}
	}
	hostile := []v1alpha1.PodContainerProbe{
		probing("hangs", "sh", command("sleep", "1000")),
		probing("leaves", "sh", command("sh", "-c", "sleep 1000 & echo up")),
		probing("floods", "sh", command("sh", "-c", "head -c 3000000 /dev/zero | tr '\\0' x")),
		probing("endless", "app", web("/endless")),
	}
	hostile[0].Probe.TimeoutSeconds, hostile[1].Probe.TimeoutSeconds = 1, 1
	s.mark("hostile", "game", hostile...)
	s.mark("good", "game", probing("good", "app", web("/state")))
	s.shows("game", "hangs=False", "leaves=False", "floods=False", "endless=True", "good=True")
	said := map[string]string{"hangs": "did not end in time", "leaves": "did not end in time", "floods": "output over", "endless": "endless"}
	pod := s.awaitPod("game", fmt.Sprintf("to say %v", said), func(pod *corev1.Pod) bool {
		for name, words := range said {
			if !strings.Contains(messageOf(pod, name), words) {
				return false
			}
		}
		return true
	})
	for name := range said {
		if message := messageOf(pod, name); len(message) > 1024 {
			t.Errorf("message of %s has %d bytes", name, len(message))
		}
	}
	for _, state := range []string{"down", "up", "down", "up"} {
		s.exec("game", "sh", "echo "+state+" > /shared/state")
		began := time.Now()
		s.shows("game", "good="+map[string]string{"up": "True", "down": "False"}[state])
		if took := time.Since(began); took > punctual {
			t.Errorf("the good probe needed %s beside hostile ones", took)
		}
	}
}

// edit changes a marker as it is now.
func (s *fixture) edit(marker *v1alpha1.PodProbeMarker, change func()) {
	s.t.Helper()
	s.await("marker "+marker.Name+" to be changed", func(ctx context.Context) (bool, error) {
		if err := s.Get(ctx, client.ObjectKeyFromObject(marker), marker); err != nil {
			return false, err
		}
		change()
		return s.Update(ctx, marker) == nil, nil
	})
}

// TestHandWrittenProbesDisturbNothing names a pod of another node, of which the daemon has to keep off, and what the
// manager takes out again. A probe of a pod of the node, written at the same time, shows that the daemon has acted on it: the
// manager may have been faster, so it is written again until then.
func TestHandWrittenProbesDisturbNothing(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	s.needsTwoNodes(t)
	victim := s.start(on(s.nodes[1], s.podOf("victim", shell("sh", obedient))))
	good := on(s.nodes[0], s.podOf("good", shell("sh", obedient)))
	good.Labels = map[string]string{"app": "good"}
	good = s.start(good)
	s.mark("good", "good", probing("good", "sh", command("true")))
	s.shows("good", "good=True")
	touching := func(pod *corev1.Pod) v1alpha1.PodProbe {
		probe := v1alpha1.ContainerProbe{Name: "hostile#x", ContainerName: "sh"}
		probe.Probe.Exec = &corev1.ExecAction{Command: []string{"touch", "/shared/touched"}}
		return v1alpha1.PodProbe{Name: pod.Name, Namespace: s.namespace, UID: string(pod.UID), IP: pod.Status.PodIP, Probes: []v1alpha1.ContainerProbe{probe}}
	}
	of := func(pod *corev1.Pod) func(v1alpha1.PodProbe) bool {
		return func(p v1alpha1.PodProbe) bool { return p.UID == string(pod.UID) }
	}
	probes := &v1alpha1.NodePodProbe{}
	name := client.ObjectKey{Name: s.nodes[0]}
	s.await("the daemon to run a hand-written probe", func(ctx context.Context) (bool, error) {
		if out, err := s.inContainer(ctx, "good", "sh", "ls /shared"); err != nil || strings.Contains(out, "touched") {
			return err == nil, nil
		}
		if err := s.Get(ctx, name, probes); err != nil || slices.ContainsFunc(probes.Spec.PodProbes, of(victim)) {
			return false, client.IgnoreNotFound(err)
		}
		probes.Spec.PodProbes = append(slices.DeleteFunc(probes.Spec.PodProbes, of(good)), touching(victim), touching(good))
		_ = s.Update(ctx, probes) // or again
		return false, nil
	})
	s.await("the manager to take it out", func(ctx context.Context) (bool, error) {
		err := s.Get(ctx, name, probes)
		return !slices.ContainsFunc(probes.Spec.PodProbes, of(victim)), err
	})
	if out := s.exec("victim", "sh", "ls /shared"); strings.Contains(out, "touched") {
		t.Error("the command was run on another node's pod")
	}
	for _, p := range probes.Status.PodProbeStatuses {
		if p.UID == string(victim.UID) {
			t.Errorf("status of a pod of another node: %+v", p)
		}
	}
	s.shows("good", "good=True")
}
