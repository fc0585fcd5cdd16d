package chart_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// keyPassword protects the key that releases of this test are signed with.
const keyPassword = "of the test"

// publisher makes releases of this checkout and pushes them to the registry of the cluster.
type publisher struct {
	t          *testing.T
	root, tool string // tool is the folder of the programs that a user downloads
	repository string // in the registry
	keys       string // folder with cosign.key and cosign.pub
}

func newPublisher(t *testing.T) *publisher {
	t.Helper()
	if os.Getenv("REFIT_RELEASE") == "" {
		t.Skip("builds two releases: make test-release, with a cluster without Refit")
	}
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	registry, err := os.ReadFile(filepath.Join(filepath.Dir(os.Getenv("KUBECONFIG")), "registry"))
	if err != nil {
		t.Fatalf("the registry of the cluster: %v", err)
	}
	p := &publisher{t: t, root: root, tool: t.TempDir(), keys: t.TempDir()}
	// A published version does not change: each run has a folder of its own.
	p.repository = fmt.Sprintf("%s/release-%d", strings.TrimSpace(string(registry)), time.Now().Unix())
	kubectl, err := exec.LookPath(filepath.Join(filepath.Dir(os.Getenv("KUBECONFIG")), "bin", "kubectl"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(kubectl, filepath.Join(p.tool, "kubectl")); err != nil {
		t.Fatal(err)
	}
	p.build("hack/chart", "helm", "helm.sh/helm/v4/cmd/helm")
	p.build("tools/cosign", "cosign", "github.com/sigstore/cosign/v3/cmd/cosign", "-trimpath", "-ldflags=-s -w") // as a release builds it
	p.build("tools/cosign", "crane", "github.com/google/go-containerregistry/cmd/crane")
	p.run(p.keys, filepath.Join(p.tool, "cosign"), "generate-key-pair")
	return p
}

func (p *publisher) build(folder, name, what string, flags ...string) {
	p.t.Helper()
	p.run(filepath.Join(p.root, folder), slices.Concat([]string{"go", "build", "-o", filepath.Join(p.tool, name)}, flags, []string{what})...)
}

func (p *publisher) run(folder string, argv ...string) string {
	p.t.Helper()
	command := exec.CommandContext(p.t.Context(), argv[0], argv[1:]...)
	command.Dir = folder
	command.Env = append(os.Environ(), "COSIGN_PASSWORD="+keyPassword)
	out, err := command.CombinedOutput()
	if err != nil {
		p.t.Fatalf("%s: %v\n%s", strings.Join(argv, " "), err, out)
	}
	return string(out)
}

// publish returns the folder with the files of the release.
func (p *publisher) publish(version string) string {
	p.t.Helper()
	began, folder := time.Now(), filepath.Join(p.t.TempDir(), "release")
	said := p.run(filepath.Join(p.root, "hack", "release"), "go", "run", ".", "--dirty", "--version="+version, "--platforms=linux/amd64",
		"--out="+folder, "--push="+p.repository, "--key="+filepath.Join(p.keys, "cosign.key"))
	p.t.Logf("release %s in %.1f s\n%s", version, time.Since(began).Seconds(), said)
	return folder
}

// user has a folder with nothing in it, and the programs of a folder.
type user struct {
	t         *testing.T
	home, bin string
}

// try runs a command line.
func (u user) try(line string) (string, error) {
	u.t.Helper()
	return u.shell(u.t.Context(), line)
}

func (u user) shell(ctx context.Context, line string) (string, error) {
	command := exec.CommandContext(ctx, "/bin/sh", "-ec", line)
	command.Dir = u.home
	command.Env = []string{"HOME=" + u.home, "PATH=" + u.bin + ":/usr/bin:/bin", "KUBECONFIG=" + os.Getenv("KUBECONFIG")}
	out, err := command.CombinedOutput()
	return string(out), err
}

func (u user) does(line string) string {
	u.t.Helper()
	began := time.Now()
	out, err := u.try(line)
	if err != nil {
		u.t.Fatalf("%s\n%v\n%s", line, err, out)
	}
	u.t.Logf("%5.1f s  %s", time.Since(began).Seconds(), strings.TrimSpace(line))
	return out
}

const verifies = "cosign verify --key=cosign.pub --insecure-ignore-tlog "

// userTime is how long a user may need from the verification of a release to its removal, without other ways to install it.
const userTime = 5 * time.Minute

// A user who has the registry, the public key and kubectl-refit of a release, and no checkout, verifies, installs, uses, upgrades, rolls back and uninstalls.
func TestReleaseIsInstalledFromARegistry(t *testing.T) {
	p := newPublisher(t)
	first, second := p.publish("v0.0.1"), p.publish("v0.0.2")
	u := user{t, t.TempDir(), p.tool}
	u.does("tar --extract --gzip --file=" + first + "/kubectl-refit_v0.0.1_linux_amd64.tar.gz --directory=" + p.tool + " kubectl-refit && cp " + p.keys + "/cosign.pub .")
	t.Cleanup(func() {
		_, _ = u.shell(context.WithoutCancel(t.Context()), "helm uninstall refit --namespace=refit-system --ignore-not-found --wait; kubectl delete namespace refit-system release-test --ignore-not-found --timeout=2m")
	})
	began := time.Now()
	p.verified(u, first)

	chart := "oci://" + p.repository + "/charts/refit --plain-http --namespace=refit-system --wait --timeout=4m --version="
	u.does("helm install refit " + chart + "0.0.1 --create-namespace")
	p.runs(u, "v0.0.1", first)
	u.does("helm test refit --namespace=refit-system --logs")
	u.does(`kubectl create namespace release-test
kubectl create deployment web --image=docker.io/library/nginx --replicas=2 --namespace=release-test
kubectl rollout status deployment/web --namespace=release-test --timeout=2m`)
	u.restarts(1)
	u.does("helm upgrade refit " + chart + "0.0.2 --reset-then-reuse-values")
	u.does("helm test refit --namespace=refit-system")
	p.runs(u, "v0.0.2", second)
	u.restarts(2)
	u.does("helm rollback refit --namespace=refit-system --wait --timeout=4m")
	p.runs(u, "v0.0.1", first)
	u.restarts(3)
	took := time.Since(began)
	p.carried(u, second)
	began = time.Now()
	u.does("helm uninstall refit --namespace=refit-system --wait")
	took += time.Since(began)
	p.kustomized(u)
	t.Logf("verify, install, test, restart, upgrade, roll back and uninstall took %.0f s", took.Seconds())
	if took >= userTime {
		t.Errorf("the user needed %s, want less than %s", took.Round(time.Second), userTime)
	}
}

// restarts restarts the pods of the user's workload, and counts the restarts of its containers.
func (u user) restarts(want int) {
	u.t.Helper()
	u.does("kubectl refit restart deployment/web --container=nginx --namespace=release-test --timeout=3m")
	got := u.does("kubectl get pods --namespace=release-test --selector=app=web --output=jsonpath='{.items[*].status.containerStatuses[*].restartCount}'")
	if got != fmt.Sprintf("%d %d", want, want) {
		u.t.Errorf("restarts of the containers: %s, want %d of each", got, want)
	}
}

// verified checks the signatures and what they state.
func (p *publisher) verified(u user, folder string) {
	p.t.Helper()
	u.does("xargs " + verifies + "<" + folder + "/images.txt")
	commit := strings.TrimSpace(p.run(p.root, "git", "rev-parse", "HEAD"))
	for _, name := range []string{"refit-daemon:v0.0.1", "refit-manager:v0.0.1", "refit-sidecar:v0.0.1", "charts/refit:0.0.1"} {
		u.does(verifies + p.repository + "/" + name)
		stated := u.states(p.repository+"/"+name, "slsaprovenance1")
		if !strings.Contains(stated, `"gitCommit":"`+commit+`"`) {
			p.t.Errorf("the provenance of %s does not name the commit %s:\n%.2000s", name, commit, stated)
		}
	}
	if stated := u.states(p.repository+"/refit-daemon:v0.0.1", "spdxjson"); !strings.Contains(stated, "pkg:golang/google.golang.org/grpc@") || !strings.Contains(stated, "pkg:oci/refit-daemon@sha256") {
		p.t.Errorf("the bill of materials is not of the daemon:\n%.2000s", stated)
	}
	u.does("mkdir other && cd other && COSIGN_PASSWORD= cosign generate-key-pair")
	if out, err := u.try("cosign verify --key=other/cosign.pub --insecure-ignore-tlog " + p.repository + "/charts/refit:0.0.1"); err == nil {
		p.t.Errorf("verified with the key of somebody else:\n%s", out)
	}
}

// states returns the predicate of an attestation.
func (u user) states(reference, kind string) string {
	u.t.Helper()
	out := u.does("cosign verify-attestation --key=cosign.pub --insecure-ignore-tlog --type=" + kind + " " + reference + " 2>/dev/null")
	var envelope struct{ Payload []byte }
	line, _, _ := strings.Cut(out, "\n")
	if err := json.Unmarshal([]byte(line), &envelope); err != nil {
		u.t.Fatalf("attestation of %s: %v\n%s", reference, err, out)
	}
	var statement struct{ Predicate json.RawMessage }
	if err := json.Unmarshal(envelope.Payload, &statement); err != nil {
		u.t.Fatalf("attestation of %s: %v\n%s", reference, err, base64.StdEncoding.EncodeToString(envelope.Payload))
	}
	return string(statement.Predicate)
}

// runs checks that exactly the images of a release run.
func (p *publisher) runs(u user, version, folder string) {
	p.t.Helper()
	images := u.does(`kubectl get daemonset/refit-daemon deployment/refit-manager --namespace=refit-system --output=jsonpath='{range .items[*]}{.spec.template.spec.containers[0].image}{"\n"}{end}'`)
	if strings.Count(images, p.repository+"/refit-") != 2 || strings.Count(images, ":"+version+"@") != 2 {
		p.t.Errorf("images of something else than %s of %s run:\n%s", version, p.repository, images)
	}
	p.matches(images, folder)
}

// matches checks that images have the digests that a release has in images.txt.
func (p *publisher) matches(images, folder string) {
	p.t.Helper()
	names, err := os.ReadFile(filepath.Join(folder, "images.txt"))
	if err != nil {
		p.t.Fatal(err)
	}
	found := digests.FindAllString(images, -1)
	if len(found) != 2 {
		p.t.Errorf("images without digests:\n%s", images)
	}
	for _, image := range found {
		if !strings.Contains(string(names), image) {
			p.t.Errorf("%s is not of\n%s", image, names)
		}
	}
}

var digests = regexp.MustCompile(`/refit-[a-z]+:\S+@sha256:[0-9a-f]{64}\n`)
