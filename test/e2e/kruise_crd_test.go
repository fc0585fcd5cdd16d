package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/refit-project/refit/api/v1beta1"
)

const requestCRD = "containerrecreaterequests.apps.kruise.io"

// TestOneStopUnderOpenKruisesCRD takes from the CRD the field that OpenKruise's lacks, in which the daemon records what it
// stops. It is not parallel, as the CRD is everybody's: parallel tests begin when this one has ended.
func TestOneStopUnderOpenKruisesCRD(t *testing.T) {
	s := newFixture(t)
	node := s.nodes[0]
	before := s.start(on(node, s.podOf("web", shell("app", obedient), shell("slow", slow))))
	s.ask("before", "web/app")
	s.succeeded("before")
	s.awaitRequest("before", "to be left alone", func(r *request) bool { return r.Labels[v1beta1.LabelActive] == "" })
	s.withoutContainerIDs("before")

	s.ask("forced", "web/app", force())
	s.ask("again", "web/app", force())
	s.succeeded("forced")
	r := s.succeeded("again")
	s.restarted(before, "app", 3)
	if r.Annotations[v1beta1.AnnotationInstances] == "" {
		t.Error("what was stopped is not recorded")
	}

	// kill -9 between the stop and whatever the daemon writes of it.
	s.ask("killed", "web/slow", force())
	s.await("TERM in the container", func(ctx context.Context) (bool, error) {
		out, err := s.kubectl(ctx, "", "--namespace", s.namespace, "logs", "web", "--container", "slow")
		return err == nil && strings.Contains(out, "TERM"), nil
	})
	if phase := stateOf(s.awaitRequest("killed", "to be there", func(*request) bool { return true }), "slow").Phase; phase != v1beta1.ContainerRecreateRequestPending {
		t.Errorf("while the stop lasts the container is %s, want Pending, as kruise-daemon writes it", phase)
	}
	pid := s.daemonProcess(node)
	s.check(syscall.Kill(pid, syscall.SIGSTOP), "suspend the daemon")
	s.awaitPod("web", "to have its next container", func(pod *corev1.Pod) bool {
		is := status(pod, "slow")
		return is.ContainerID != status(before, "slow").ContainerID && is.State.Running != nil
	})
	s.check(syscall.Kill(pid, syscall.SIGKILL), "kill the daemon")
	s.succeeded("killed")
	s.restarted(before, "slow", 1)
}

// slow takes longer to end than it takes to suspend the daemon meanwhile.
const slow = `trap 'echo TERM; sleep 4; exit 0' TERM; echo started; while :; do sleep 1000 & wait $!; done`

// withoutContainerIDs makes the CRD like OpenKruise's until the test ends. The request is one that has ended, and tells
// when the API server has taken over the CRD.
func (s *fixture) withoutContainerIDs(ended string) {
	s.t.Helper()
	text := s.run("get", "crd", requestCRD, "--output=json")
	var full unstructured.Unstructured
	s.check(json.Unmarshal([]byte(text), &full.Object), "decode CRD")
	unstructured.RemoveNestedField(full.Object, "metadata", "resourceVersion")
	pruned := full.DeepCopy()
	versions, _, err := unstructured.NestedSlice(pruned.Object, "spec", "versions")
	s.check(err, "versions of the CRD")
	for _, version := range versions {
		for _, field := range []string{"containerID", "stopBegan"} {
			unstructured.RemoveNestedField(version.(map[string]any), "schema", "openAPIV3Schema", "properties", "status", "properties",
				"containerRecreateStates", "items", "properties", field)
		}
	}
	s.check(unstructured.SetNestedSlice(pruned.Object, versions, "spec", "versions"), "versions of the CRD")
	s.t.Cleanup(func() {
		if err := s.putCRD(context.WithoutCancel(s.t.Context()), &full, ended, true); err != nil {
			s.t.Errorf("put the CRD back: %v", err)
		}
	})
	s.check(s.putCRD(s.t.Context(), pruned, ended, false), "replace the CRD")
}

// putCRD replaces the CRD and waits until container IDs of the ended request are shown, or not.
func (s *fixture) putCRD(ctx context.Context, crd *unstructured.Unstructured, ended string, shown bool) error {
	text, err := json.Marshal(crd.Object)
	if err != nil {
		return err
	}
	if out, err := s.kubectl(ctx, string(text), "replace", "--filename", "-"); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return until(ctx, patience, func(ctx context.Context) (bool, error) {
		r := &request{}
		if err := s.Get(ctx, s.key(ended), r); err != nil {
			return false, err
		}
		return (r.Status.ContainerRecreateStates[0].ContainerID != "") == shown, nil
	})
}

// daemonProcess finds the daemon of a node of a test cluster among the processes of this machine.
func (s *fixture) daemonProcess(node string) int {
	s.t.Helper()
	_, id, _ := strings.Cut(s.daemonOn(node).Status.ContainerStatuses[0].ContainerID, "://")
	cgroups, err := filepath.Glob("/proc/[0-9]*/cgroup")
	s.check(err, "list processes")
	for _, file := range cgroups {
		text, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(text), id) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		s.check(err, "process %s", file)
		return pid
	}
	s.t.Skipf("refit-daemon of node %s is no process of this machine", node)
	return 0
}
