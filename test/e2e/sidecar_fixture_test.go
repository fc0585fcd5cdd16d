package e2e_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/refit-project/refit/hack/portforward"
)

const (
	sidecarToken = "a-token-of-the-test"
	callTimeout  = 45 * time.Second

	hotUpdated = corev1.PodConditionType("refit.dev/HotUpdated")
	selfTested = corev1.PodConditionType("refit.dev/SidecarSelfTest")
)

// sidecarFixture is a fixture with what the example pods of deploy/sidecar need, and a pod to download from.
type sidecarFixture struct {
	*fixture
	mu    sync.Mutex
	ports map[string]*portforward.Port
}

// clusterWide applies what all namespaces share, once: the policies of the sidecar, and the stand-in for GameServers.
var clusterWide = sync.OnceValue(func() error {
	c, err := connect()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, args := range [][]string{
		{"apply", "--server-side", "--filename", root() + "/deploy/sidecar/20-policy.yaml"},
		{"apply", "--server-side", "--filename", root() + "/deploy/sidecar/examples/gameserver.yaml"},
		{"wait", "--for=condition=Established", "crd/gameservers.game.kruise.io", "--timeout=30s"},
	} {
		if out, err := c.kubectl(ctx, "", args...); err != nil {
			return fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, out)
		}
	}
	return nil
})

// newSidecarFixture takes the configuration of deploy/sidecar as it is, with the edits, which are pairs of what is
// there and what is wanted instead.
func newSidecarFixture(t *testing.T, edits ...string) *sidecarFixture {
	t.Helper()
	s := &sidecarFixture{fixture: newFixture(t), ports: map[string]*portforward.Port{}}
	if program := os.Getenv(virtualProgram); program != "" {
		s.startVirtualNode(program)
	}
	s.check(clusterWide(), "apply what all namespaces share")
	t.Cleanup(s.closePorts)
	s.apply(s.example("10-rbac.yaml"))
	s.apply(s.edited("30-config.yaml", edits...))
	s.run("create", "secret", "generic", "refit-sidecar-token", "--from-literal=token="+sidecarToken)
	s.apply(fileServer)
	return s
}

func (s *sidecarFixture) closePorts() {
	if s.t.Failed() {
		out, _ := s.kubectl(context.WithoutCancel(s.t.Context()), "", "--namespace", s.namespace, "logs", "--container=refit-sidecar", "--prefix", "--tail=20", "--selector=refit.dev/sidecar=true")
		s.t.Log(out)
	}
	for _, port := range s.ports {
		port.Close()
	}
}

func (s *sidecarFixture) example(name string) string {
	s.t.Helper()
	manifest, err := s.deploy.Manifest("sidecar/" + name)
	s.check(err, "read manifest")
	return string(manifest)
}

func (s *sidecarFixture) edited(name string, edits ...string) string {
	s.t.Helper()
	text := s.example(name)
	for pair := range slices.Chunk(edits, 2) {
		if !strings.Contains(text, pair[0]) {
			s.t.Fatalf("%s has no %q", name, pair[0])
		}
		text = strings.ReplaceAll(text, pair[0], pair[1])
	}
	return text
}

// apply is kubectl apply in the fixture's namespace.
func (s *sidecarFixture) apply(manifest string) {
	s.t.Helper()
	out, err := s.kubectl(s.t.Context(), manifest, "apply", "--namespace", s.namespace, "--filename", "-")
	s.check(err, "apply: %s", out)
}

// examplePod is the pod of a manifest; what else is in it is made.
func (s *sidecarFixture) examplePod(name string) *corev1.Pod {
	s.t.Helper()
	var found *corev1.Pod
	for _, document := range strings.Split(s.example("examples/"+name), "\n---\n") {
		pod := &corev1.Pod{}
		if yaml.UnmarshalStrict([]byte(document), pod) != nil || pod.Kind != "Pod" {
			s.apply(document)
			continue
		}
		found = pod
	}
	found.Namespace = s.namespace
	return s.placed(found)
}

// deployment is a pod as a Deployment of one.
func (s *sidecarFixture) deployment(name string, pod *corev1.Pod) *appsv1.Deployment {
	s.t.Helper()
	labels := map[string]string{"app": name, "refit.dev/sidecar": "true"}
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.namespace},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod.Spec},
		},
	}
	s.check(s.Create(s.t.Context(), d), "make deployment")
	return d
}

// podOfDeployment is the one pod of a Deployment that is ready and is not another one.
func (s *sidecarFixture) podOfDeployment(name, not string) *corev1.Pod {
	s.t.Helper()
	var found *corev1.Pod
	s.await("pod of deployment "+name, func(ctx context.Context) (bool, error) {
		var pods corev1.PodList
		err := s.List(ctx, &pods, client.InNamespace(s.namespace), client.MatchingLabels{"app": name})
		for _, pod := range pods.Items {
			if pod.Name != not && pod.DeletionTimestamp == nil && condition(&pod, corev1.PodReady) == corev1.ConditionTrue {
				found = &pod
			}
		}
		return found != nil, err
	})
	return found
}

// fileServer has two good configurations of nginx, one that nginx does not understand, and a redirect to where no
// download may go.
var fileServer = `
apiVersion: v1
kind: ConfigMap
metadata: {name: files}
data:
  v1: |` + siteConfig("v1") + `
  v2: |` + siteConfig("v2") + `
  bad: |
    server { listen 80; this is no configuration; }
  server.conf: |
    server {
      listen 80;
      root /srv;
      location /away { return 302 http://169.254.169.254/latest/meta-data/; }
    }
---
apiVersion: v1
kind: Pod
metadata: {name: files}
spec:
  automountServiceAccountToken: false
  containers:
    - name: nginx
      image: docker.io/library/nginx:1.22
      volumeMounts:
        - {name: conf, mountPath: /etc/nginx/conf.d}
        - {name: files, mountPath: /srv}
      readinessProbe: {httpGet: {path: /v1/default.conf, port: 80}, periodSeconds: 1}
  volumes:
    - name: conf
      configMap: {name: files, items: [{key: server.conf, path: server.conf}]}
    - name: files
      configMap:
        name: files
        items: [{key: v1, path: v1/default.conf}, {key: v2, path: v2/default.conf}, {key: bad, path: bad/default.conf}]
`

// siteConfig is what an update brings: a site that says its version, and a state that is in a file.
func siteConfig(version string) string {
	return `
    server {
      listen 80;
      default_type text/plain;
      location = /version { return 200 ` + version + `; }
      location = /state { alias /tmp/state; }
      location / { return 200 "this is ` + version + `"; }
    }`
}

// source is where the pod files serves a path.
func (s *sidecarFixture) source(path string) string {
	s.t.Helper()
	pod := s.awaitPod("files", "to be ready", func(pod *corev1.Pod) bool { return condition(pod, corev1.PodReady) == corev1.ConditionTrue })
	return "http://" + pod.Status.PodIP + "/" + path
}
