package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/cri"
	"github.com/refit-project/refit/internal/identity"
)

// The images of a test cluster: one program, of another digest under each tag.
const (
	newImage     = "docker.io/library/busybox:1.35"
	missingImage = "docker.io/library/busybox:no-such-tag"
)

// tool is kubectl-refit, built from this checkout.
var tool = sync.OnceValues(func() (string, error) {
	path, err := filepath.Abs(filepath.Join(root(), "dist", "bin", "kubectl-refit"))
	if err != nil {
		return "", err
	}
	command := exec.Command("go", "build", "-o", path, "./cmd/kubectl-refit")
	command.Dir = root()
	if out, err := command.CombinedOutput(); err != nil {
		return "", errors.Join(err, errors.New(string(out)))
	}
	return path, nil
})

// set is kubectl-refit set in the fixture's namespace; it returns what was said, and the exit code.
func (s *fixture) set(args ...string) (string, int) {
	s.t.Helper()
	path, err := tool()
	s.check(err, "build kubectl-refit")
	// The last of a flag given twice counts.
	command := exec.CommandContext(s.t.Context(), path, append([]string{"set", "--namespace", s.namespace, "--timeout", patience.String()}, args...)...)
	command.Env = os.Environ()
	out, err := command.CombinedOutput()
	if exit := (&exec.ExitError{}); err != nil && !errors.As(err, &exit) {
		s.t.Fatalf("kubectl-refit: %v", err)
	}
	return string(out), command.ProcessState.ExitCode()
}

// leaves is set that is killed as soon as the pod is as what says, so that it takes nothing back.
func (s *fixture) leaves(what string, when func(*corev1.Pod) bool, args ...string) {
	s.t.Helper()
	path, err := tool()
	s.check(err, "build kubectl-refit")
	ctx, kill := context.WithCancel(s.t.Context())
	defer kill()
	command := exec.CommandContext(ctx, path, append([]string{"set", "--namespace", s.namespace}, args...)...)
	command.Env = os.Environ()
	s.check(command.Start(), "start kubectl-refit")
	s.awaitPod("web", what, when)
	kill()
	_ = command.Wait()
}

// updates is set that has to succeed.
func (s *fixture) updates(args ...string) string {
	s.t.Helper()
	out, code := s.set(args...)
	if code != 0 {
		s.t.Fatalf("kubectl-refit set %s: exit code %d:\n%s", strings.Join(args, " "), code, out)
	}
	return out
}

// observed tells what docs/kubelet-facts.md says of kubelet.
func (s *fixture) observed(format string, args ...any) {
	s.t.Helper()
	s.t.Logf("observed: "+format, args...)
}

// gated gives a pod the readiness gate of in-place updates, and opens it.
func (s *fixture) gated(pod *corev1.Pod) *corev1.Pod {
	s.t.Helper()
	pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: v1beta1.ReadinessGateInPlaceUpdateReady}}
	s.start(pod)
	s.gate(pod.Name, corev1.ConditionTrue)
	return s.awaitPod(pod.Name, "to be ready", podReady)
}

// gate writes the condition of the readiness gate, and others if they are named. Ready is kubelet's otherwise.
func (s *fixture) gate(pod string, to corev1.ConditionStatus, also ...corev1.PodConditionType) {
	s.t.Helper()
	var conditions []string
	for _, kind := range append([]corev1.PodConditionType{v1beta1.ReadinessGateInPlaceUpdateReady}, also...) {
		conditions = append(conditions, fmt.Sprintf(`{"type":%q,"status":%q,"lastTransitionTime":%q}`, kind, to, time.Now().UTC().Format(time.RFC3339)))
	}
	patch := `{"status":{"conditions":[` + strings.Join(conditions, ",") + `]}}`
	s.check(s.Status().Patch(s.t.Context(), s.pod(pod), client.RawPatch(types.StrategicMergePatchType, []byte(patch))), "write condition")
}

func podReady(pod *corev1.Pod) bool { return condition(pod, corev1.PodReady) == corev1.ConditionTrue }

// same fails the test unless the pod is the one it was, at the same address.
func (s *fixture) same(before *corev1.Pod) {
	s.t.Helper()
	if after := s.pod(before.Name); after.UID != before.UID || after.Status.PodIP != before.Status.PodIP {
		s.t.Errorf("UID %s and IP %s, want %s and %s still", after.UID, after.Status.PodIP, before.UID, before.Status.PodIP)
	}
}

// runtime is the container runtime of the pod's node.
func (s *fixture) runtime(pod *corev1.Pod) *cri.Client {
	s.t.Helper()
	return s.runtimeOf(pod.Spec.NodeName)
}

func (s *fixture) runtimeOf(node string) *cri.Client {
	s.t.Helper()
	s.needsOwnCluster(s.t)
	client, err := cri.New(cri.Config{Endpoint: filepath.Join(s.state, "nodes", node, "containerd.sock")})
	s.check(err, "connect to the container runtime")
	s.t.Cleanup(func() { _ = client.Close() })
	return client
}

func instance(t *testing.T, pod *corev1.Pod, container string) string {
	t.Helper()
	id, err := identity.ParseContainerID(status(pod, container).ContainerID)
	if err != nil {
		t.Fatalf("container %s: %v", container, err)
	}
	return id.ID
}

// stop ends an instance through CRI, as an agent on the node does.
func (s *fixture) stop(pod *corev1.Pod, container string) time.Time {
	s.t.Helper()
	s.check(s.runtime(pod).StopContainer(s.t.Context(), instance(s.t, pod, container), 5*time.Second), "stop container %s", container)
	return time.Now()
}

// setImage changes the spec alone, as kubectl set image does.
func (s *fixture) setImage(pod string, pairs ...string) {
	s.t.Helper()
	s.run(append([]string{"set", "image", "pod/" + pod}, pairs...)...)
}

// replaced waits for another running instance than before.
func (s *fixture) replaced(before *corev1.Pod, container string) *corev1.Pod {
	s.t.Helper()
	was := status(before, container).ContainerID
	return s.awaitPod(before.Name, "to run another "+container, func(pod *corev1.Pod) bool {
		is := status(pod, container)
		return is.ContainerID != was && is.State.Running != nil
	})
}

// running reports whether kubelet tells of another running instance than before.
func (s *fixture) running(before *corev1.Pod, container string) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		pod := &corev1.Pod{}
		err := s.Get(ctx, s.key(before.Name), pod)
		is := status(pod, container)
		return is.State.Running != nil && is.ContainerID != status(before, container).ContainerID, err
	}
}

// brief is a pod with a small termination grace period, so that what ignores TERM does not make tests long.
func (s *fixture) brief(pod *corev1.Pod) *corev1.Pod {
	pod.Spec.TerminationGracePeriodSeconds = new(int64(3))
	return pod
}

// ctr runs containerd's own client on a node.
func (s *fixture) ctr(node string, args ...string) string {
	s.t.Helper()
	s.needsOwnCluster(s.t)
	command := exec.CommandContext(context.WithoutCancel(s.t.Context()), filepath.Join(s.state, "bin", "ctr"),
		append([]string{"--address", filepath.Join(s.state, "nodes", node, "containerd.sock"), "--namespace", "k8s.io"}, args...)...)
	out, err := command.CombinedOutput()
	if err != nil {
		s.t.Fatalf("ctr %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// says reports whether the container's log has the text.
func (s *fixture) says(pod, container, text string) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		out, _ := s.kubectl(ctx, "", "--namespace", s.namespace, "logs", pod, "--container", container)
		return strings.Contains(out, text), nil
	}
}
