package e2e_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/test/kit/markdown"
)

// TestWhatDiffersAfterAChangeOfProgramsIsReported has objects as OpenKruise stores them beside some of Refit's. It is not parallel, as
// it looks at all of the cluster: parallel tests begin when this one has ended.
func TestWhatDiffersAfterAChangeOfProgramsIsReported(t *testing.T) {
	s := newSidecarSet(t, 1, func(spec *v1beta1.SidecarSetSpec) {
		spec.UpdateStrategy.MaxUnavailable = new(intstr.FromString("37%"))
		spec.UpdateStrategy.MinReadySeconds = 1
		spec.InjectionStrategy.Revision = &v1beta1.SidecarSetInjectRevision{RevisionName: new("of-kruise"), MissingPolicy: "Latest"}
	})
	s.ofOpenKruise()

	out, code := s.refit("doctor", "--openkruise=to-refit")
	s.said(out, code, 1,
		"differs  CRD clonesets.apps.kruise.io: 1 object: "+s.namespace+"/db; Refit does not serve this kind. Keep kruise-manager for it",
		"differs  feature gate KruisePodReadinessGate: it is on",
		"differs  ControllerRevisions of SidecarSets: 1 revision is in namespace "+s.namespace+" alone",
		"differs  SidecarSet "+s.name+": updateStrategy.maxUnavailable is 37%",
		"differs  SidecarSet "+s.name+": injectionStrategy.revision names a revision of kruise-manager's namespace",
		"differs  ImagePullJob "+s.namespace+"/game: its pulls are under way",
		"differs  ImagePullJob "+s.namespace+"/game: refit-manager may not read the pull secrets of its namespace",
		"differs  Deployment "+s.namespace+"/web: it has a container log, which SidecarSet "+s.name+" has too",
		"differs  Pod "+s.namespace+"/db-0: an update of its containers in place is under way",
		"not everything behaves as before",
	)
	out, code = s.refit("doctor", "--openkruise=from-refit")
	s.said(out, code, 1,
		"differs  SidecarSet "+s.name+": updateStrategy.minReadySeconds: the next pod is updated as soon as",
		"differs  SidecarSet "+s.name+": injectionStrategy.revision.missingPolicy: new pods are refused",
		"differs  PodProbeMarker "+s.namespace+"/idle: its probe idle is a grpc probe",
		"differs  Pod "+s.namespace+"/db-0: an update of its containers in place is under way",
	)
	// A user without rights is told so, and is not told that something differs.
	out, code = s.refit("doctor", "--openkruise", "--as=system:serviceaccount:"+s.namespace+":default")
	s.said(out, code, 0, "skipped  pods: you may not read them", "skipped  CustomResourceDefinitions", "nothing differs in what was read")
}

// said compares what a command has printed, and how it has ended.
func (s *sidecarSet) said(out string, code, want int, words ...string) {
	s.t.Helper()
	for _, word := range words {
		if !strings.Contains(out, word) {
			s.t.Errorf("no %q", word)
		}
	}
	if code != want || s.t.Failed() {
		s.t.Errorf("exit code %d, want %d:\n%s", code, want, out)
	}
}

// ofOpenKruise makes what OpenKruise and its users have on a cluster, in the namespace of the test; nothing of it runs.
func (s *sidecarSet) ofOpenKruise() {
	s.t.Helper()
	s.t.Cleanup(func() {
		s.kubectlOrFail(context.WithoutCancel(s.t.Context()), "", "delete", "crd", "clonesets.apps.kruise.io", "--ignore-not-found")
	})
	s.kubectlOrFail(s.t.Context(), strings.ReplaceAll(openKruise, "NAMESPACE", s.namespace), "apply", "--server-side", "--filename", "-")
	s.await("CloneSets", func(ctx context.Context) (bool, error) {
		_, err := s.kubectl(ctx, strings.ReplaceAll(cloneSet, "NAMESPACE", s.namespace), "apply", "--server-side", "--filename", "-")
		return err == nil, nil // until the API server serves the kind
	})
	web := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "web"}}
	web.Spec.Replicas = new(int32(0))
	web.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"sidecars": s.name}}
	web.Spec.Template.Labels = web.Spec.Selector.MatchLabels
	web.Spec.Template.Spec.Containers = []corev1.Container{{Name: "app", Image: image}, {Name: "log", Image: image}}
	s.check(s.Create(s.t.Context(), web), "create Deployment")
	db := s.podOf("db-0", shell("db", obedient))
	db.Annotations = map[string]string{v1beta1.AnnotationInPlaceUpdateState: `{"revision":"2","updateTimestamp":"2026-01-02T03:04:05Z","lastContainerStatuses":{},` +
		`"updateImages":true,"nextContainerImages":{"db":"` + newImage + `"}}`}
	s.start(db)
}

const openKruise = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: clonesets.apps.kruise.io}
spec:
  group: apps.kruise.io
  names: {kind: CloneSet, listKind: CloneSetList, plural: clonesets, singular: cloneset}
  scope: Namespaced
  versions:
  - {name: v1alpha1, served: true, storage: false, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
  - {name: v1beta1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {namespace: NAMESPACE, name: kruise-controller-manager, labels: {control-plane: controller-manager}}
spec:
  replicas: 0
  selector: {matchLabels: {control-plane: controller-manager}}
  template:
    metadata: {labels: {control-plane: controller-manager}}
    spec: {containers: [{name: manager, image: none, args: ['--feature-gates=ImagePullJobGate=true,KruisePodReadinessGate=true']}]}
---
apiVersion: apps/v1
kind: ControllerRevision
metadata: {namespace: NAMESPACE, name: of-kruise, labels: {kruise.io/sidecarset-name: NAMESPACE}}
revision: 1
data: {}
---
apiVersion: apps.kruise.io/v1beta1
kind: ImagePullJob
metadata: {namespace: NAMESPACE, name: game, finalizers: [apps.kruise.io/deletion-protection]}
spec:
  image: docker.io/library/busybox:1.36
  parallelism: 0
  pullSecrets: [registry]
  imagePullPolicy: IfNotPresent
  pullPolicy: {timeoutSeconds: 600, backoffLimit: 3}
  completionPolicy: {type: Always}
---
apiVersion: apps.kruise.io/v1alpha1
kind: PodProbeMarker
metadata: {namespace: NAMESPACE, name: idle}
spec:
  selector: {matchLabels: {none: such}}
  probes: [{name: idle, containerName: app, podConditionType: example.com/idle, probe: {grpc: {port: 80}}}]
`

const cloneSet = `
apiVersion: apps.kruise.io/v1beta1
kind: CloneSet
metadata: {namespace: NAMESPACE, name: db}
spec: {replicas: 1, template: {metadata: {labels: {app: db}}, spec: {containers: [{name: db, image: none}]}}}
`

// TestOpenKruisesManagerIsTakenAwayAndPutBack runs the commands of docs/migrate-from-openkruise.md against objects with the names of
// OpenKruise's. It is not parallel, as the CRDs are everybody's: parallel tests begin when this one has ended.
func TestOpenKruisesManagerIsTakenAwayAndPutBack(t *testing.T) {
	s := newFixture(t)
	s.needsOwnCluster(t)
	s.start(s.podOf("web", shell("app", obedient)))
	s.ask("before", "web/app")
	s.succeeded("before")
	s.withManagerOfOpenKruise()
	// The CRDs as OpenKruise has them: a webhook converts, which nobody serves here.
	s.withConversionWebhook("before")
	blocks := s.documentedBlocks("migrate-from-openkruise.md", t.Name())
	if len(blocks) != 4 {
		t.Fatalf("%d blocks of commands: want saving, stopping, replacing and putting back", len(blocks))
	}
	desk := s.desk()

	for _, block := range blocks[:3] {
		s.commands(desk, block)
	}
	s.check(s.alphaReadable(t.Context(), "before", true), "wait for the CRDs of Refit")
	for _, gone := range []string{"mutatingwebhookconfiguration/kruise-mutating-webhook-configuration", "validatingwebhookconfiguration/kruise-validating-webhook-configuration"} {
		if out := s.run("get", gone, "--ignore-not-found", "--output=name"); out != "" {
			t.Errorf("%s is still there", gone)
		}
	}

	s.commands(desk, blocks[3])
	strategy := s.run("get", "crd", requestCRD, "--output=jsonpath={.spec.conversion.strategy} {.spec.conversion.webhook.clientConfig.service.path}")
	if strategy != "Webhook /convert" {
		t.Errorf("after the way back the conversion is %q", strategy)
	}
	replicas := s.run("get", "deployment", "kruise-controller-manager", "--namespace=kruise-system", "--output=jsonpath={.spec.replicas}")
	webhook := s.run("get", "mutatingwebhookconfiguration", "kruise-mutating-webhook-configuration", "--output=jsonpath={.webhooks[0].name}")
	if replicas != "2" || webhook != "mnothing.example.com" {
		t.Errorf("%s replicas, webhook %q", replicas, webhook)
	}
}

// withManagerOfOpenKruise makes objects with the names of kruise-manager's until the test ends. Its pods cannot be scheduled, and its webhooks
// match nothing.
func (s *fixture) withManagerOfOpenKruise() {
	s.t.Helper()
	ctx := context.WithoutCancel(s.t.Context())
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kruise-system"}}
	made := s.Create(s.t.Context(), namespace) == nil
	s.t.Cleanup(func() {
		s.kubectlOrFail(ctx, "", "delete", "--ignore-not-found", "mutatingwebhookconfiguration/kruise-mutating-webhook-configuration",
			"validatingwebhookconfiguration/kruise-validating-webhook-configuration")
		s.kubectlOrFail(ctx, "", "delete", "--ignore-not-found", "--namespace=kruise-system", "deployment/kruise-controller-manager")
		if made {
			if err := client.IgnoreNotFound(s.Delete(ctx, namespace)); err != nil {
				s.t.Errorf("clean: %v", err)
			}
		}
	})
	manager := strings.ReplaceAll(kruiseManager, "WEBHOOK", `
webhooks:
- name: mnothing.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  clientConfig: {service: {namespace: kruise-system, name: kruise-webhook-service, path: /nothing}}
  rules: [{apiGroups: [nothing.example.com], apiVersions: [v1], resources: [nothing], operations: [CREATE]}]`)
	s.kubectlOrFail(s.t.Context(), manager, "apply", "--server-side", "--filename", "-")
}

const kruiseManager = `
apiVersion: apps/v1
kind: Deployment
metadata: {namespace: kruise-system, name: kruise-controller-manager, labels: {control-plane: controller-manager}}
spec:
  replicas: 1
  selector: {matchLabels: {control-plane: controller-manager}}
  template:
    metadata: {labels: {control-plane: controller-manager}}
    spec: {nodeSelector: {no-such-node: 'true'}, terminationGracePeriodSeconds: 0, containers: [{name: manager, image: none}]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: kruise-mutating-webhook-configuration}
WEBHOOK
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: kruise-validating-webhook-configuration}
WEBHOOK
`

// documentedBlocks are the blocks of commands of a page that are marked as tested by that test.
func (s *fixture) documentedBlocks(page, test string) []markdown.Block {
	s.t.Helper()
	all, err := markdown.Read(filepath.Join(root(), "docs", page))
	s.check(err, "read %s", page)
	var marked []markdown.Block
	for _, block := range all {
		if block.Mark == markdown.By && block.Value == test {
			marked = append(marked, block)
		}
	}
	return marked
}

// commands runs a block of commands as a user does, and stops at the first that fails.
func (s *fixture) commands(desk string, block markdown.Block) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	command := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", block.Text)
	command.Dir = desk
	command.Env = append(os.Environ(), "KUBECONFIG="+filepath.Join(desk, "kubeconfig"), "PATH="+filepath.Join(desk, "bin")+":"+os.Getenv("PATH"))
	if out, err := command.CombinedOutput(); err != nil {
		s.t.Fatalf("%s: %v\n%s", block, err, out)
	}
}
