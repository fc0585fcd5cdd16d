package chart_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/refit-project/refit/hack/install"
)

const (
	namespace = "refit-system"
	shop      = "chart-test" // namespace of the pods that are restarted
	pods      = 4
)

// place is the cluster, with what the tests run on it.
type place struct {
	t                    *testing.T
	root                 string
	kubectl, helm, refit string
	images               map[string]string // by name, as testapp
	values               []string          // of every installation
}

func newPlace(t *testing.T) *place {
	t.Helper()
	if os.Getenv("REFIT_CHART") == "" {
		t.Skip("needs a cluster without Refit: set REFIT_CHART=1 and KUBECONFIG")
	}
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	p := &place{t: t, root: root, kubectl: "kubectl", helm: filepath.Join(root, "dist", "bin", "helm"), refit: filepath.Join(root, "dist", "bin", "kubectl-refit"), images: map[string]string{}}
	state := filepath.Dir(os.Getenv("KUBECONFIG"))
	if tool := filepath.Join(state, "bin", "kubectl"); exists(tool) {
		p.kubectl = tool
	}
	p.values = p.valuesOf(root)
	for _, name := range []string{"testapp", "hotupgrade-load"} {
		if p.images[name] == "" {
			t.Fatalf("image %s has not been pushed: hack/images.sh --tests", name)
		}
	}
	p.build(filepath.Join(root, "hack", "chart"), p.helm, "helm.sh/helm/v4/cmd/helm")
	p.build(root, p.refit, "./cmd/kubectl-refit")
	return p
}

// valuesOf are flags of helm that name the images that hack/images.sh of a checkout has pushed.
func (p *place) valuesOf(checkout string) []string {
	p.t.Helper()
	pushed, err := install.Pushed(checkout)
	if err != nil || len(pushed) == 0 {
		p.t.Fatalf("no images have been pushed: %v", err)
	}
	for _, full := range pushed {
		name, _, _ := strings.Cut(path.Base(full), ":")
		p.images[name] = full
	}
	values, err := install.Values(pushed)
	if err != nil {
		p.t.Fatal(err)
	}
	return values
}

// pack returns the chart of a checkout as its users have it.
func (p *place) pack(checkout string) string {
	p.t.Helper()
	folder := p.t.TempDir()
	p.run(p.helm, "package", filepath.Join(checkout, "deploy", "chart"), "--destination="+folder)
	packages, err := filepath.Glob(filepath.Join(folder, "refit-*.tgz"))
	if err != nil || len(packages) != 1 {
		p.t.Fatalf("packages %v, %v", packages, err)
	}
	return packages[0]
}

// uninstallAtEnd removes the release and its namespace when the test has ended, however it ends.
func (p *place) uninstallAtEnd() {
	p.t.Cleanup(func() {
		ctx := context.WithoutCancel(p.t.Context())
		_, _ = output(ctx, "", p.helm, "uninstall", "refit", "--namespace="+namespace, "--ignore-not-found", "--wait")
		_, _ = output(ctx, "", p.kubectl, "delete", "namespace", namespace, "--ignore-not-found", "--timeout=2m")
	})
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func (p *place) build(folder, to, what string) {
	p.t.Helper()
	command := exec.CommandContext(p.t.Context(), "go", "build", "-o", to, what)
	command.Dir = folder
	if out, err := command.CombinedOutput(); err != nil {
		p.t.Fatalf("build %s: %v\n%s", what, err, out)
	}
}

// run returns what a program says; it has to succeed.
func (p *place) run(program string, args ...string) string {
	p.t.Helper()
	return p.runWith(p.t.Context(), "", program, args...)
}

func (p *place) runWith(ctx context.Context, input, program string, args ...string) string {
	p.t.Helper()
	out, err := output(ctx, input, program, args...)
	if err != nil {
		p.t.Fatalf("%s %s: %v\n%s", filepath.Base(program), strings.Join(args, " "), err, out)
	}
	return out
}

func output(ctx context.Context, input, program string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, program, args...)
	command.Stdin = strings.NewReader(input)
	out, err := command.CombinedOutput()
	return string(out), err
}

// release runs helm for the release refit.
func (p *place) release(verb string, args ...string) string {
	p.t.Helper()
	began := time.Now()
	out := p.run(p.helm, append([]string{verb, "refit", "--namespace=" + namespace, "--timeout=4m"}, args...)...)
	p.t.Logf("helm %s in %.1f s", verb, time.Since(began).Seconds())
	return out
}

// kindsOf are what an installation may leave behind. Of the objects in namespaces only those are looked at that no controller
// makes for the objects of others.
var kindsOf = []string{
	"namespaces", "clusterroles", "clusterrolebindings", "customresourcedefinitions", "mutatingwebhookconfigurations", "validatingadmissionpolicies",
	"validatingadmissionpolicybindings", "roles", "rolebindings", "serviceaccounts", "secrets", "configmaps", "services", "deployments", "daemonsets",
	"statefulsets", "jobs", "cronjobs", "leases", "poddisruptionbudgets", "networkpolicies", "controllerrevisions", "pods",
}

// objects of the cluster that could be of an installation: all except Leases of nodes and the test's own namespace.
func (p *place) objects() []string {
	p.t.Helper()
	const form = `{range .items[*]}{.kind}{"/"}{.metadata.namespace}{"/"}{.metadata.name}{"\n"}{end}`
	lines := strings.Fields(p.run(p.kubectl, "get", strings.Join(kindsOf, ","), "--all-namespaces", "--output=jsonpath="+form))
	return slices.DeleteFunc(lines, func(line string) bool {
		return strings.Contains(line+"/", "/"+shop+"/") || strings.HasPrefix(line, "Lease/kube-") || strings.HasPrefix(line, "ControllerRevision/kube-")
	})
}

// left are the objects that were not there before.
func (p *place) left(before []string) []string {
	p.t.Helper()
	return slices.DeleteFunc(p.objects(), func(line string) bool { return slices.Contains(before, line) })
}

// during restarts the containers of all pods while something else is done, and checks that each was restarted once.
func (p *place) during(what string, do func()) {
	p.t.Helper()
	want := strings.Fields(p.restarts())
	ctx, cancel := context.WithTimeout(p.t.Context(), 6*time.Minute)
	defer cancel()
	type end struct {
		out string
		err error
	}
	ended := make(chan end, 1)
	go func() {
		out, err := output(ctx, "", p.refit, "restart", "deployment/web", "--container=app", "--namespace="+shop, "--min-ready-seconds=3", "--timeout=5m")
		ended <- end{out, err}
	}()
	do()
	if result := <-ended; result.err != nil {
		p.t.Fatalf("restart during %s: %v\n%s", what, result.err, result.out)
	}
	for i, count := range strings.Fields(p.restarts()) {
		var before, now int
		if _, err := fmt.Sscan(want[i]+" "+count, &before, &now); err != nil || now != before+1 {
			p.t.Errorf("restarts during %s: %s before, %s after: want one more of each (%v)", what, want, p.restarts(), err)
			break
		}
	}
}

func TestChart(t *testing.T) {
	p := newPlace(t)
	before := p.objects()
	p.uninstallAtEnd()
	p.namespace()
	flags := append([]string{p.pack(p.root), "--wait"}, p.values...)
	others := p.admitsOthers()
	notes := p.release("install", append(flags, "--create-namespace", "--set=tracing.endpoint="+p.collects())...)
	others()
	if !strings.Contains(notes, "kubectl refit restart deployment/NAME") {
		t.Errorf("the notes say:\n%s", notes)
	}
	p.fitsIntoASecret()
	p.workload()
	p.healthy()
	p.traced()

	p.during("a restart of the programs", func() {
		p.run(p.kubectl, "rollout", "restart", "daemonset/refit-daemon", "deployment/refit-manager", "--namespace="+namespace)
		p.run(p.kubectl, "rollout", "status", "deployment/refit-manager", "--namespace="+namespace, "--timeout=3m")
	})
	if p.mayReadSecrets() {
		t.Error("refit-manager may read Secrets without manager.features.secretChanges")
	}
	p.during("an upgrade", func() {
		p.release("upgrade", append(flags, "--set=log.level=debug", "--set=commonLabels.team=a", "--set=networkPolicy.enabled=true", "--set=manager.features.secretChanges=true")...)
	})
	p.restartsOnSecretChange()
	if args := p.run(p.kubectl, "get", "daemonset/refit-daemon", "--namespace="+namespace, "--output=jsonpath={.spec.template.spec.containers[0].args}"); !strings.Contains(args, "--log-level=debug") {
		t.Errorf("the upgrade has not reached the daemon: %s", args)
	}
	p.during("a rollback", func() { p.run(p.helm, "rollback", "refit", "1", "--namespace="+namespace, "--wait", "--timeout=4m") })
	if p.mayReadSecrets() {
		t.Error("refit-manager may still read Secrets after the rollback")
	}
	p.healthy()

	p.release("uninstall", "--wait")
	kept := []string{"Namespace//kruise-daemon-config", "ServiceAccount/kruise-daemon-config/default", "ConfigMap/kruise-daemon-config/kube-root-ca.crt"}
	p.gone(before, func(object string) bool {
		return strings.HasPrefix(object, "CustomResourceDefinition/") || slices.Contains(kept, object)
	})
	if out := p.run(p.kubectl, "get", "restartrollouts", "--namespace="+shop, "--output=name"); out == "" {
		t.Error("the objects of CRDs that stay are gone")
	}

	// CRDs and the namespace that were left are taken over by the next installation, and go with it if they are asked to.
	p.release("install", append(flags, "--set=crds.keep=false", "--set=pullSecretNamespace.keep=false", p.authority())...)
	p.healthy()
	p.during("a call of a webhook without a certificate", p.refusesWithoutCertificate)
	p.release("uninstall", "--wait")
	p.run(p.kubectl, "delete", "configmap/api-server", "--namespace="+namespace)
	p.gone(before, func(string) bool { return false })
}

// fitsIntoASecret checks that the Secret in which Helm stores the release is well below the 1 MiB that Kubernetes allows.
func (p *place) fitsIntoASecret() {
	p.t.Helper()
	const limit = 800_000
	var data struct{ Release []byte }
	out := p.run(p.kubectl, "get", "secret/sh.helm.release.v1.refit.v1", "--namespace="+namespace, "--output=jsonpath={.data}")
	if err := json.Unmarshal([]byte(out), &data); err != nil {
		p.t.Fatalf("read the Secret of the release: %v", err)
	}
	p.t.Logf("the release has %d bytes", len(data.Release))
	if len(data.Release) == 0 || len(data.Release) > limit {
		p.t.Errorf("the release has %d bytes in its Secret, want at most %d", len(data.Release), limit)
	}
}

// healthy runs helm test, and the same checks from outside.
func (p *place) healthy() {
	p.t.Helper()
	p.release("test", "--logs")
	if out := p.run(p.refit, "doctor", "--namespace="+shop); strings.Contains(out, "failed ") || !strings.Contains(out, "ok       webhook") || !strings.Contains(out, "ok       policies") {
		p.t.Errorf("doctor:\n%s", out)
	}
}

// gone checks that an uninstalled release has left only what may stay, and the namespace that helm was told to make.
func (p *place) gone(before []string, stays func(string) bool) {
	p.t.Helper()
	deadline := time.NewTimer(time.Minute)
	defer deadline.Stop()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		left := slices.DeleteFunc(p.left(before), func(object string) bool {
			return stays(object) || object == "Namespace//"+namespace || object == "ServiceAccount/"+namespace+"/default" || object == "ConfigMap/"+namespace+"/kube-root-ca.crt"
		})
		if len(left) == 0 {
			return
		}
		select {
		case <-deadline.C:
			p.t.Errorf("left behind: %s", strings.Join(left, ", "))
			return
		case <-tick.C:
		}
	}
}
