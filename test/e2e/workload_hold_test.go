package e2e_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	refitv1alpha1 "github.com/refit-project/refit/api/refit/v1alpha1"
)

// asManager are the arguments by which kubectl writes as refit-manager, with the rights of an administrator, so that only the
// admission policies limit it.
var asManager = []string{"--as=system:serviceaccount:" + systemNamespace + ":refit-manager", "--as-group=system:masters"}

// governed gives the workload an InPlaceUpdatePolicy that begins nothing, and waits until the API server knows it.
func (w *workload) governed() {
	w.t.Helper()
	w.input(fmt.Sprintf(`
apiVersion: refit.dev/v1alpha1
kind: InPlaceUpdatePolicy
metadata: {name: web}
spec: {targetRef: {apiVersion: apps/v1, kind: %s, name: web}, paused: true}
`, w.kind), "apply")
	w.run("patch", "inplaceupdatepolicy/web", "--subresource=status", "--type=merge", "--patch",
		`{"status":{"matchedPods":0,"conditions":[{"type":"Accepted","status":"True","reason":"Accepted","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`)
	w.awaitHold()
}

// heldByPolicy reports whether a MutatingAdmissionPolicy holds workloads. Before Kubernetes 1.36 a webhook does.
func (c *cluster) heldByPolicy() bool { return c.minor >= mutatingPolicies.minor }

func (w *workload) awaitHold() {
	w.t.Helper()
	w.await("the API server to hold "+w.ref, func(ctx context.Context) (bool, error) {
		out, err := w.kubectl(ctx, "", "set", "image", w.ref, "app="+missingImage, "--dry-run=server", "--output=yaml", "--namespace", w.namespace)
		return err == nil && w.holdOf(out) == w.hold(0), err
	})
}

// hold is what a held workload says, and holdOf what the text of one says.
func (w *workload) hold(partition int) string {
	return map[string]string{"Deployment": "true paused", "StatefulSet": fmt.Sprintf("true %d", refitv1alpha1.HeldPartition-partition), "DaemonSet": "true OnDelete"}[w.kind]
}

func (w *workload) holdOf(text string) string {
	w.t.Helper()
	var u struct {
		Metadata struct{ Labels map[string]string }
		Spec     struct {
			Paused         bool
			UpdateStrategy struct {
				Type          string
				RollingUpdate struct{ Partition int }
			}
		}
	}
	if at := strings.Index(text, "apiVersion:"); at > 0 {
		text = text[at:] // after warnings
	}
	w.check(yaml.Unmarshal([]byte(text), &u), "read %s", text)
	hold := ""
	switch {
	case w.kind == "Deployment" && u.Spec.Paused:
		hold = "paused"
	case w.kind == "StatefulSet":
		hold = fmt.Sprint(u.Spec.UpdateStrategy.RollingUpdate.Partition)
	case w.kind == "DaemonSet":
		hold = u.Spec.UpdateStrategy.Type
	}
	return u.Metadata.Labels[refitv1alpha1.LabelHeld] + " " + hold
}

func (w *workload) stored() string {
	w.t.Helper()
	return w.run("get", w.ref, "--output=yaml", "--show-managed-fields")
}

// isHeld fails the test unless the text of a workload says that it is held.
func (w *workload) isHeld(what, text string, partition int) {
	w.t.Helper()
	if got, want := w.holdOf(text), w.hold(partition); got != want {
		w.t.Errorf("%s: %q, want %q", what, got, want)
	}
}

const (
	ownDeployment  = "replicas: 2,"
	ownStatefulSet = "serviceName: web, replicas: 2, updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: %d}},"
	ownDaemonSet   = "updateStrategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1, maxUnavailable: 0}},"
)

// edits is kubectl edit with an editor that sets the image.
func (w *workload) edits(from, to string) {
	w.t.Helper()
	command := exec.CommandContext(w.t.Context(), w.program, "edit", w.ref, "--namespace", w.namespace)
	command.Env = append(os.Environ(), "KUBE_EDITOR=sed -i s#"+from+"#"+to+"#")
	out, err := command.CombinedOutput()
	w.check(err, "kubectl edit: %s", out)
}

func TestChangedDeploymentIsHeldWhateverChangesIt(t *testing.T) {
	t.Parallel()
	w := newWorkload(t, "Deployment", ownDeployment)
	pods := w.ready(2)
	w.governed()
	changed := w.manifest("web", ownDeployment, newImage)
	dry := []string{"--dry-run=server", "--output=yaml"}
	for name, text := range map[string]string{
		"set image":         w.run(append([]string{"set", "image", w.ref, "app=" + newImage}, dry...)...),
		"apply":             w.input(changed, append([]string{"apply"}, dry...)...),
		"server-side apply": w.input(changed, append([]string{"apply", "--server-side", "--force-conflicts"}, dry...)...),
		"replace":           w.input(changed, append([]string{"replace"}, dry...)...),
		"with paused false": w.input(w.manifest("web", "paused: false, "+ownDeployment, newImage), append([]string{"apply"}, dry...)...),
	} {
		w.isHeld(name, text, 0)
	}
	if text := w.run(append([]string{"scale", w.ref, "--replicas=3"}, dry...)...); strings.Contains(text, refitv1alpha1.LabelHeld) {
		t.Errorf("scaling holds: %s", text)
	}
	w.edits(image, newImage)
	text := w.stored()
	w.isHeld("edit", text, 0)
	if strings.Contains(text, "f:paused") {
		t.Errorf("a manager owns spec.paused: %s", text)
	}
	w.settled()
	w.keeps(pods)
	w.run("rollout", "resume", w.ref)
	w.isHeld("rollout resume", w.stored(), 0)
	w.run("label", w.ref, refitv1alpha1.LabelHeld+"-")
	w.isHeld("label removed", w.stored(), 0)
	w.input(w.manifest("web", "paused: false, "+ownDeployment, newImage), "apply", "--server-side", "--force-conflicts")
	w.isHeld("apply with paused: false", w.stored(), 0)
	w.input(changed, "replace")
	w.isHeld("replace", w.stored(), 0)
	w.settled()
	w.keeps(pods)
	w.refusedRun("nothing of a ReplicaSet", append([]string{"patch", "replicaset/" + w.sets()[0].Name, "--patch", `{"spec":{"replicas":5}}`}, asManager...)...)
	w.limitsManager(`"paused":false`)
	w.rolledOut()
	if got := imagesOf(w.ready(2)); slices.Contains(got, image) {
		t.Errorf("images after the release: %v", got)
	}
	if got := w.holdOf(w.stored()); got != " " {
		t.Errorf("hold after the release: %q", got)
	}
	pods = w.ready(2)
	w.run("rollout", "undo", w.ref, "--to-revision=1")
	w.isHeld("rollout undo", w.stored(), 0)
	w.settled()
	w.keeps(pods)
}

// limitsManager tries what refit-manager may not do to a held workload, and releases it.
func (w *workload) limitsManager(release string) {
	w.t.Helper()
	for word, patch := range map[string]string{
		"nothing of a workload's spec":                               `{"spec":{"revisionHistoryLimit":7}}`,
		"nothing of a workload's metadata":                           `{"metadata":{"annotations":{"a":"b"}}}`,
		"the label " + refitv1alpha1.LabelUndone:                     `{"spec":{` + templateOf(missingImage) + `}}`,
		"failurePolicy or deletionPolicy Undo":                       `{"metadata":{"labels":{"` + refitv1alpha1.LabelUndone + `":"true"}},"spec":{` + templateOf(missingImage) + `}}`,
		"from which it removes the label " + refitv1alpha1.LabelHeld: `{"spec":{` + release + `}}`,
	} {
		w.refusedRun(word, append([]string{"patch", w.ref, "--patch", patch}, asManager...)...)
	}
	w.run(append([]string{"patch", w.ref, "--patch", `{"metadata":{"labels":{"` + refitv1alpha1.LabelHeld + `":null}},"spec":{` + release + `}}`}, asManager...)...)
	w.refusedRun("workloads that are held", append([]string{"patch", w.ref, "--patch", `{"metadata":{"annotations":{"a":"b"}}}`}, asManager...)...)
}

func TestChangedStatefulSetIsHeldWithThePartitionOfItsOwner(t *testing.T) {
	t.Parallel()
	w := newWorkload(t, "StatefulSet", fmt.Sprintf(ownStatefulSet, 0))
	pods := w.ready(2)
	w.governed()
	w.input(w.manifest("web", fmt.Sprintf(ownStatefulSet, 1), newImage), "apply")
	w.isHeld("apply", w.stored(), 1)
	w.settled()
	w.keeps(pods)
	w.run("set", "image", w.ref, "app="+missingImage)
	w.isHeld("set image", w.stored(), 1)
	w.input(w.manifest("web", fmt.Sprintf(ownStatefulSet, 0), newImage), "apply", "--server-side", "--force-conflicts")
	w.isHeld("apply with partition 0", w.stored(), 0)
	w.settled()
	w.keeps(pods)
	w.limitsManager(`"updateStrategy":{"rollingUpdate":{"partition":0}}`)
	w.rolledOut()
	if got := imagesOf(w.ready(2)); slices.Contains(got, image) {
		t.Errorf("images after the release: %v", got)
	}
}

func TestChangedDaemonSetIsHeldAndKeepsItsStrategy(t *testing.T) {
	t.Parallel()
	w := newWorkload(t, "DaemonSet", ownDaemonSet)
	pods := w.webs()
	w.governed()
	w.run("set", "image", w.ref, "app="+newImage)
	w.isHeld("set image", w.stored(), 0)
	w.input(w.manifest("web", ownDaemonSet, newImage), "apply")
	w.isHeld("apply with RollingUpdate", w.stored(), 0)
	u := w.settled()
	w.keeps(pods)
	if got := field(u, "spec.updateStrategy.rollingUpdate.maxSurge"); got != "1" {
		t.Errorf("maxSurge %q", got)
	}
	w.limitsManager(`"updateStrategy":{"type":"RollingUpdate"}`)
	w.rolledOut()
	if got := imagesOf(w.ready(len(pods))); slices.Contains(got, image) {
		t.Errorf("images after the release: %v", got)
	}
}

func TestNothingIsHeldWithoutAPolicyForIt(t *testing.T) {
	t.Parallel()
	w := newWorkload(t, "Deployment", ownDeployment)
	set := func(ref string) string {
		return w.run("set", "image", ref, "app="+newImage, "--dry-run=server", "--output=yaml")
	}
	if got := w.holdOf(set(w.ref)); got != " " {
		t.Errorf("without a policy: %q", got)
	}
	w.governed()
	w.input(w.manifest("other", ownDeployment, image), "apply")
	if got := w.holdOf(set("deployment/other")); got != " " {
		t.Errorf("another Deployment: %q", got)
	}
	w.run("patch", "inplaceupdatepolicy/web", "--type=merge", "--patch", `{"spec":{"holdPolicy":"ByOwner"}}`)
	w.await("the owner to hold", func(context.Context) (bool, error) { return w.holdOf(set(w.ref)) == " ", nil })
	w.run("patch", "inplaceupdatepolicy/web", "--type=merge", "--patch", `{"spec":{"holdPolicy":"WhileUpdating"}}`)
	w.await("the API server to hold", func(context.Context) (bool, error) { return w.holdOf(set(w.ref)) == w.hold(0), nil })
	w.run("rollout", "restart", w.ref)
	w.rolledOut()
	w.run("delete", "inplaceupdatepolicy/web", "--timeout="+patience.String())
	w.await("the end of the hold", func(context.Context) (bool, error) { return w.holdOf(set(w.ref)) == " ", nil })
}

func TestWorkloadIsHeldWhileNoManagerRuns(t *testing.T) {
	w := newWorkload(t, "Deployment", ownDeployment)
	pods := w.ready(2)
	w.governed()
	w.scaleManager(0)
	w.run("set", "image", w.ref, "app="+newImage)
	w.isHeld("set image", w.stored(), 0)
	w.settled()
	w.keeps(pods)
}

// Whoever may write InPlaceUpdatePolicies and not the workload gains nothing.
func TestAPolicyNeedsTheRightToUpdateItsWorkload(t *testing.T) {
	t.Parallel()
	w := newWorkload(t, "Deployment", ownDeployment)
	const alice = "--as=alice"
	policy := func(name string) string {
		return "apiVersion: refit.dev/v1alpha1\nkind: InPlaceUpdatePolicy\nmetadata: {name: " + name + "}\nspec: {paused: true, targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}\n"
	}
	w.run("create", "rolebinding", "alice", "--clusterrole=refit-inplaceupdatepolicy-editor", "--user=alice")
	w.await("her rights", func(ctx context.Context) (bool, error) {
		out, _ := w.kubectl(ctx, "", "--namespace", w.namespace, "auth", "can-i", "create", "inplaceupdatepolicies.refit.dev", alice)
		return strings.TrimSpace(out) == "yes", nil
	})
	refused := func(manifest string) {
		t.Helper()
		out, err := w.kubectl(t.Context(), manifest, "apply", "--namespace", w.namespace, "--filename=-", alice)
		if err == nil || !strings.Contains(out, "only who may update Deployment web") {
			t.Errorf("%v: %s", err, out)
		}
	}
	refused(policy("web"))
	w.input(policy("web"), "apply")
	refused(strings.Replace(policy("web"), "paused: true", "paused: false", 1))
	w.awaitHold()
	w.run("set", "image", "deployment/web", "app="+newImage)
	w.run("wait", "inplaceupdatepolicy/web", "--for=jsonpath={.status.update.startTime}", "--timeout=90s")
	w.refusedRun("only who may update Deployment web", "delete", "inplaceupdatepolicy/web", alice) // it would be completed
	w.run("create", "rolebinding", "alice-edits", "--clusterrole=edit", "--user=alice")
	w.await("more rights", func(ctx context.Context) (bool, error) {
		_, err := w.kubectl(ctx, policy("second"), "apply", "--namespace", w.namespace, "--filename=-", alice)
		return err == nil, nil
	})
	w.refusedRun("at most 200 characters", "create", "--filename="+w.file("long.yaml", policy(strings.Repeat("a", 201))))
}

// file is a file with the text, for the time of the test.
func (w *workload) file(name, text string) string {
	w.t.Helper()
	path := w.t.TempDir() + "/" + name
	w.check(os.WriteFile(path, []byte(text), 0o600), "write %s", name)
	return path
}
