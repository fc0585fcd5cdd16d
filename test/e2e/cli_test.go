package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/refit-project/refit/api/v1beta1"
)

// shown is what kubectl-refit says, which has to end well and to contain the words.
func (s *fixture) shown(args []string, words ...string) string {
	s.t.Helper()
	out, code := s.refit(args...)
	for _, word := range words {
		if code != 0 || !strings.Contains(out, word) {
			s.t.Errorf("kubectl refit %s: exit code %d, want %q in:\n%s", strings.Join(args, " "), code, word, out)
		}
	}
	return out
}

func TestCommandsShowARestartFromBothSides(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	pods := s.deployment("web", 2)
	out, code := s.restart("deployment/web", "-c", "app", "--max-unavailable=2")
	if code != 0 || !strings.Contains(out, "container app: restarted in") || !strings.Contains(out, " -> containerd://") {
		t.Errorf("exit code %d:\n%s", code, out)
	}
	s.shown([]string{"status"}, "restartrollout/web-", "deployment/web", "Succeeded", "2/2", "crr/web-")
	s.shown([]string{"status", "-o", "wide"}, "DETAIL", "2 of 2 pods have been restarted")
	names := strings.Fields(s.shown([]string{"status", "-o", "name"}, "restartrollout.refit.dev/web-"))
	s.run(append([]string{"get", "--output=name"}, names...)...)
	s.shown([]string{"logs", pods[0].Name, "-c", "app"}, "==> app: previous instance ", "ended ", "\nTERM\n", "==> app: instance ", "restarts 1", "started")
	if out, code := s.refit("logs", pods[0].Name); code != 2 || !strings.Contains(out, "app, log") {
		t.Errorf("exit code %d:\n%s", code, out)
	}
}

func TestPullCommandPutsAnImageOnTheNodesThatAreSelected(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	repository, tag, _ := s.testappImage()
	node := s.nodes[0]
	s.shown([]string{"pull", repository + ":" + tag, "--nodes=kubernetes.io/hostname=" + node, "--timeout=" + patience.String()}, "1 of 1 node has "+repository)
	if s.onNode(node, repository+":"+tag) == "" {
		t.Errorf("node %s does not have the image", node)
	}
	s.shown([]string{"status"}, "imagepulljob/pull-testapp-", "1/1")
	if out, code := s.refit("pull", repository+":missing", "--nodes=kubernetes.io/hostname=no-such-node"); code != 1 || !strings.Contains(out, "no node is selected") {
		t.Errorf("exit code %d:\n%s", code, out)
	}
}

func TestProbesAreListedWithTheirResults(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	pod := s.podOf("web", shell("app", obedient))
	pod.Labels = map[string]string{"app": "web"}
	s.start(pod)
	s.mark("idle", "web", probing("up", "app", command("true")), probing("down", "app", command("false")))
	s.shows("web", "up=True", "down=False")
	rows := []string{"web app idle down Failed", "web app idle up Succeeded"}
	s.await(fmt.Sprintf("probe ls to list %q", rows), func(context.Context) (bool, error) { // a command that takes longer than its timeout is Unknown
		out := s.shown([]string{"probe", "ls"}, "MARKER") //nolint:contextcheck // the command has the context of the test
		return !slices.ContainsFunc(rows, func(row string) bool { return !hasLine(out, row) }), nil
	})
}

// hasLine reports whether a line of a table begins with these cells.
func hasLine(table, cells string) bool {
	for line := range strings.Lines(table) {
		if strings.HasPrefix(strings.Join(strings.Fields(line), " "), cells) {
			return true
		}
	}
	return false
}

func TestSidecarSetIsPausedResumedAndTakenBackByCommands(t *testing.T) {
	t.Parallel()
	const n = 2
	s := newSidecarSet(t, n)
	s.reaches("to count the pods as updated", completed(n))
	s.shown([]string{"sidecarset", "pause", s.name}, "paused")
	s.setsImage(newImage)
	s.reaches("to pause", func(status *v1beta1.SidecarSetStatus) bool {
		return reason(status, v1beta1.ConditionProgressing) == "Paused"
	})
	s.shown([]string{"sidecarset", "status", s.name}, "Paused")
	s.shown([]string{"sidecarset", "resume", s.name}, "resumed")
	s.reaches("to be completed", completed(n))
	if got := s.images(n); got[newImage] != n {
		t.Errorf("images %v", got)
	}
	s.shown([]string{"sidecarset", "history", s.name}, "REVISION", "log="+image)
	s.shown([]string{"rollout", "undo", "sidecarset/" + s.name}, "taken back to revision 1")
	s.shown([]string{"rollout", "status", "sidecarset/" + s.name, followed}, "Completed")
	s.reaches("to be taken back", completed(n))
	if got := s.images(n); got[image] != n {
		t.Errorf("images %v", got)
	}
	s.shown([]string{"sidecarset", "status", s.name, "-o", "wide"}, "Completed", "log="+image)
	s.shown([]string{"sidecarset", "render", "pod/web-0"}, s.name)
}

// watch ends by Ctrl-C, and tells of what happens meanwhile.
func TestWatchPrintsARestart(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	s.start(s.podOf("web", shell("app", obedient)))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	told := s.watching(ctx, "watch")
	if out, code := s.restart("pod/web", "-c", "app"); code != 0 {
		t.Fatalf("exit code %d:\n%s", code, out)
	}
	for line := range told {
		if strings.Contains(line, "crr/web-") && strings.Contains(line, "pod/web Succeeded 1/1") {
			return
		}
	}
	t.Error("the restart was not reported")
}

// The times come from a request, its Events and the pod, and what is not known is said.
func TestTimelineShowsWhenTheStepsOfARestartWere(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	pods := s.deployment("web", 1)
	if out, code := s.restart("deployment/web", "-c", "app"); code != 0 {
		t.Fatalf("exit code %d:\n%s", code, out)
	}
	names := strings.Fields(s.shown([]string{"status", "-o", "name"}, "restartrollout.refit.dev/web-", "containerrecreaterequest.apps.kruise.io/web-"))
	s.awaitEvent("Killing", "by ContainerRecreateRequest web-") // Events are sent after what they tell of
	s.awaitEvent("ContainersRecreated")
	for _, name := range names {
		s.shown([]string{"timeline", name}, pods[0].Name, "admitted-at", "Event Killing, by refit-daemon", "Event Started, by kubelet", "Event ContainersRecreated", "requested by ")
		s.shown([]string{"timeline", name, "-o", "svg"}, "</svg>", "new instance")
	}
	if out, code := s.refit("timeline", "crr/none"); code != 1 {
		t.Errorf("exit code %d:\n%s", code, out)
	}
}

// kubectl asks kubectl_complete-refit, which it finds in the PATH, as the shell asks kubectl.
func TestKubectlCompletesArgumentsOfRefit(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	s.start(s.podOf("web", shell("app", obedient), shell("log", obedient)))
	path, err := tool()
	s.check(err, "build kubectl-refit")
	folder := t.TempDir()
	script, err := filepath.Abs("../../cmd/kubectl-refit/kubectl_complete-refit")
	s.check(err, "find kubectl_complete-refit")
	kubectl, err := exec.LookPath(s.program)
	s.check(err, "find kubectl")
	s.check(errors.Join(os.Symlink(path, filepath.Join(folder, "kubectl-refit")), os.Symlink(script, filepath.Join(folder, "kubectl_complete-refit")),
		os.Symlink(kubectl, filepath.Join(folder, "kubectl"))), "make a folder of PATH")
	for typed, want := range map[string]string{
		"why w": "web", "restart pod/": "pod/web", "restart pod/web -c ": "app log", "restart st": "statefulset/", "set image pod/web l": "log=", "why web -o ": "json yaml",
	} {
		args := append([]string{"__complete", "refit", "--namespace", s.namespace}, strings.Split(typed, " ")...)
		command := exec.CommandContext(t.Context(), kubectl, args...)
		command.Env = append(os.Environ(), "PATH="+folder+":"+os.Getenv("PATH"))
		out, err := command.Output()
		values, _, _ := strings.Cut(string(out), ":")
		if got := strings.Join(strings.Fields(values), " "); err != nil || got != want {
			t.Errorf("kubectl refit %s: %q, want %q (%v)", typed, out, want, err)
		}
	}
}
