package doctor_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/refit-project/refit/internal/doctor"
)

var now = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// world is a cluster, healthy unless a test changes it.
type world struct {
	objects map[string]client.Object
	create  error            // answer to the request on trial
	read    map[string]error // by the name or the type of what is read, as *v1.Lease
}

func (w *world) drop(key string) { delete(w.objects, key) }

func (w *world) add(key string, object client.Object) { w.objects[key] = object }

var errDenied = apierrors.NewBadRequest(`admission webhook "mcontainerrecreaterequest.kb.io" denied the request: spec.podName: pod refit-doctor-no-such-pod not found`)

func certificate(t *testing.T, until time.Time) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: until}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func meta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

func template(image string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: image}}}}
}

func daemonPod(node string, ready corev1.ConditionStatus) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: meta("refit-system", "refit-daemon-"+node)}
	pod.Labels = map[string]string{"app.kubernetes.io/name": "refit-daemon"}
	pod.Spec.NodeName = node
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}
	return pod
}

func configuration(name string, bundle []byte, webhooks ...string) *admissionregistrationv1.MutatingWebhookConfiguration {
	c := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: meta("", name)}
	for _, webhook := range webhooks {
		c.Webhooks = append(c.Webhooks, admissionregistrationv1.MutatingWebhook{Name: webhook, ClientConfig: admissionregistrationv1.WebhookClientConfig{CABundle: bundle}})
	}
	return c
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{objects: map[string]client.Object{}, create: errDenied, read: map[string]error{}}
	for _, name := range []string{
		"containerrecreaterequests.apps.kruise.io", "imagelistpulljobs.apps.kruise.io", "imagepulljobs.apps.kruise.io", "inplaceupdatepolicies.refit.dev", "nodeimages.apps.kruise.io",
		"nodepodprobes.apps.kruise.io", "podprobemarkers.apps.kruise.io", "restartrollouts.refit.dev", "restartschedules.refit.dev", "restarttriggers.refit.dev",
		"sidecarsets.apps.kruise.io",
	} {
		crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: meta("", name)}
		crd.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{{Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue}}
		w.add("crd "+name, crd)
	}
	manager := &appsv1.Deployment{ObjectMeta: meta("refit-system", "refit-manager")}
	manager.Spec.Replicas, manager.Spec.Template, manager.Status.ReadyReplicas = new(int32(2)), template("example.com:5000/refit-manager:v1@sha256:0a"), 2
	w.add("manager", manager)
	daemon := &appsv1.DaemonSet{ObjectMeta: meta("refit-system", "refit-daemon")}
	daemon.Spec.Template, daemon.Status.DesiredNumberScheduled = template("refit-daemon:v1"), 2
	w.add("daemon", daemon)
	w.add("lease", &coordinationv1.Lease{ObjectMeta: meta("refit-system", "refit-manager"), Spec: coordinationv1.LeaseSpec{RenewTime: new(metav1.NewMicroTime(now.Add(-2 * time.Second)))}})
	w.add("node-1", daemonPod("node-1", corev1.ConditionTrue))
	w.add("node-2", daemonPod("node-2", corev1.ConditionTrue))
	w.add("webhook", configuration("refit-manager", certificate(t, now.Add(3000*24*time.Hour)), "mcontainerrecreaterequest.kb.io"))
	secret := &corev1.Secret{ObjectMeta: meta("refit-system", "refit-manager-webhook-cert"), Data: map[string][]byte{"tls.crt": certificate(t, now.Add(200*24*time.Hour))}}
	w.add("secret", secret)
	for _, name := range []string{
		"refit-daemon-requests", "refit-daemon-record", "refit-daemon-pods", "refit-daemon-probes", "refit-daemon-images", "refit-daemon-events", "refit-manager-pods", "refit-manager-requests",
		"refit-manager-rollouts", "refit-manager-revisions", "refit-manager-workloads", "refit-manager-undo", "refit-manager-replicasets", "refit-podprobemarker", "refit-sidecarset-required", "refit-inplaceupdatepolicy",
	} {
		w.add("policy "+name, &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: meta("", name)})
		binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: meta("", name)}
		binding.Spec.PolicyName, binding.Spec.ValidationActions = name, []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny}
		w.add("binding "+name, binding)
	}
	return w
}

func (w *world) client(t *testing.T) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := doctor.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	builder := fake.NewClientBuilder().WithScheme(scheme)
	for _, object := range w.objects {
		builder = builder.WithObjects(object)
	}
	return builder.WithInterceptorFuncs(interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, _ client.Object, opts ...client.CreateOption) error {
			var options client.CreateOptions
			options.ApplyOptions(opts)
			if len(options.DryRun) == 0 {
				return errors.New("a doctor creates nothing")
			}
			return w.create
		},
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
			for _, by := range []string{key.Name, fmt.Sprintf("%T", object)} {
				if err := w.read[by]; err != nil {
					return err
				}
			}
			return c.Get(ctx, key, object, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if _, policies := list.(*admissionregistrationv1.ValidatingAdmissionPolicyList); policies && w.read["policies"] != nil {
				return w.read["policies"]
			}
			return c.List(ctx, list, opts...)
		},
	}).Build()
}

// What may not be read is not missing.
func TestUserWhoMayNotReadTheSystemNamespaceIsToldSoByEachCheck(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "things"}, "", errors.New("no"))
	w.read["refit-manager"], w.read["refit-daemon"] = forbidden, forbidden
	skipped := 0
	for _, finding := range doctor.Examine(t.Context(), doctor.Config{API: w.client(t), System: "refit-system", Namespace: "shop", Now: now}) {
		if strings.Contains(finding.Message, "there is no refit-manager") {
			t.Errorf("%+v", finding)
		}
		if finding.Result == doctor.Skipped && strings.Contains(finding.Message, "you may not read them; a role with the verbs get and list") {
			skipped++
		}
	}
	if skipped < 5 { // manager, daemons, versions, certificates, policies
		t.Errorf("%d checks say that they were skipped", skipped)
	}
}

func TestFindings(t *testing.T) {
	t.Parallel()
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "things"}, "", errors.New("no"))
	kruise := func(w *world, args ...string) {
		manager := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "kruise-system", Name: "kruise-controller-manager", Labels: map[string]string{"control-plane": "controller-manager"}}}
		w.add("kruise", manager)
		w.objects["manager"].(*appsv1.Deployment).Spec.Template.Spec.Containers[0].Args = args
	}
	for name, tc := range map[string]struct {
		change func(*testing.T, *world)
		check  string
		result doctor.Result
		words  string
	}{
		"CRDs":                  {func(*testing.T, *world) {}, "CRDs", doctor.OK, "11 of 11"},
		"no CRD of requests":    {func(_ *testing.T, w *world) { w.drop("crd containerrecreaterequests.apps.kruise.io") }, "CRDs", doctor.Failed, "missing: containerrecreaterequests"},
		"no CRD of SidecarSets": {func(_ *testing.T, w *world) { w.drop("crd sidecarsets.apps.kruise.io") }, "CRDs", doctor.Warning, "missing: sidecarsets"},
		"CRD that is not served": {func(_ *testing.T, w *world) {
			w.objects["crd sidecarsets.apps.kruise.io"].(*apiextensionsv1.CustomResourceDefinition).Status.Conditions = nil
		}, "CRDs", doctor.Failed, "not established: sidecarsets"},
		"CRDs that may not be read": {func(_ *testing.T, w *world) { w.read["nodeimages.apps.kruise.io"] = forbidden }, "CRDs", doctor.Skipped, "may not read"},
		"manager":                   {func(*testing.T, *world) {}, "manager", doctor.OK, "2 of 2"},
		"one replica":               {func(_ *testing.T, w *world) { w.objects["manager"].(*appsv1.Deployment).Status.ReadyReplicas = 1 }, "manager", doctor.Warning, "1 of 2"},
		"no replica":                {func(_ *testing.T, w *world) { w.objects["manager"].(*appsv1.Deployment).Status.ReadyReplicas = 0 }, "manager", doctor.Failed, "no request can be created"},
		"no manager":                {func(_ *testing.T, w *world) { w.drop("manager") }, "manager", doctor.Skipped, "kruise-manager"},
		"nothing":                   {func(_ *testing.T, w *world) { w.drop("manager"); w.drop("daemon") }, "manager", doctor.Failed, "--system-namespace"},
		"daemons":                   {func(*testing.T, *world) {}, "daemons", doctor.OK, "2 of 2 nodes"},
		"daemon that is not ready":  {func(_ *testing.T, w *world) { w.add("node-2", daemonPod("node-2", corev1.ConditionFalse)) }, "daemons", doctor.Failed, "not on: node-2"},
		"node without a daemon":     {func(_ *testing.T, w *world) { w.drop("node-2") }, "daemons", doctor.Failed, "ready on 1 of 2 nodes; 1 pod is missing: kubectl describe daemonset refit-daemon --namespace refit-system"},
		"no DaemonSet":              {func(_ *testing.T, w *world) { w.drop("daemon") }, "daemons", doctor.Failed, "not carried out"},
		"versions":                  {func(*testing.T, *world) {}, "versions", doctor.OK, "refit-manager v1, refit-daemon v1, this program v1"},
		"versions that differ": {func(_ *testing.T, w *world) {
			w.objects["daemon"].(*appsv1.DaemonSet).Spec.Template = template("localhost:5000/refit-daemon")
		}, "versions", doctor.Warning, "refit-daemon latest"},
		"webhook":                    {func(*testing.T, *world) {}, "webhook", doctor.OK, "answered"},
		"webhook that is not called": {func(_ *testing.T, w *world) { w.create = nil }, "webhook", doctor.Failed, "no webhook checks"},
		"webhook that is away": {func(_ *testing.T, w *world) {
			w.create = apierrors.NewInternalError(errors.New(`failed calling webhook "mcontainerrecreaterequest.kb.io": connection refused`))
		}, "webhook", doctor.Failed, "connection refused"},
		"webhook that may not be tried": {func(_ *testing.T, w *world) { w.create = forbidden }, "webhook", doctor.Skipped, "in namespace shop"},
		"certificates":                  {func(*testing.T, *world) {}, "certificates", doctor.OK, "serving certificate: valid until 2027-06-10, for 200 days"},
		"certificate that ends soon": {func(t *testing.T, w *world) {
			w.objects["secret"].(*corev1.Secret).Data["tls.crt"] = certificate(t, now.Add(48*time.Hour))
		}, "certificates", doctor.Warning, "in 2 days"},
		"certificate that ends before its authority": {func(t *testing.T, w *world) {
			w.objects["secret"].(*corev1.Secret).Data["tls.crt"] = append(certificate(t, now.Add(48*time.Hour)), certificate(t, now.Add(900*24*time.Hour))...)
		}, "certificates", doctor.Warning, "in 2 days"},
		"certificate in another Secret": {func(t *testing.T, w *world) {
			w.objects["manager"].(*appsv1.Deployment).Spec.Template.Spec.Containers[0].Args = []string{"--cert-secret=ours"}
			w.add("ours", &corev1.Secret{ObjectMeta: meta("refit-system", "ours"), Data: map[string][]byte{"tls.crt": certificate(t, now.Add(-time.Hour))}})
		}, "certificates", doctor.Failed, "serving certificate: expired"},
		"authority that has ended": {func(t *testing.T, w *world) {
			w.add("webhook", configuration("refit-manager", certificate(t, now.Add(-time.Hour)), "a"))
		}, "certificates", doctor.Failed, "expired on"},
		"no authority":                  {func(_ *testing.T, w *world) { w.add("webhook", configuration("refit-manager", nil, "a")) }, "certificates", doctor.Failed, "caBundle is empty"},
		"not a certificate":             {func(_ *testing.T, w *world) { w.add("webhook", configuration("refit-manager", []byte("x"), "a")) }, "certificates", doctor.Failed, "no certificate"},
		"no webhook configuration":      {func(_ *testing.T, w *world) { w.drop("webhook") }, "certificates", doctor.Warning, "no MutatingWebhookConfiguration"},
		"Secret that may not be read":   {func(_ *testing.T, w *world) { w.read["refit-manager-webhook-cert"] = forbidden }, "certificates", doctor.OK, "authority of mcontainerrecreaterequest.kb.io"},
		"policies":                      {func(*testing.T, *world) {}, "policies", doctor.OK, "16 of 16"},
		"policy that is not there":      {func(_ *testing.T, w *world) { w.drop("policy refit-daemon-pods") }, "policies", doctor.Warning, "refit-daemon-pods"},
		"policy that is not bound":      {func(_ *testing.T, w *world) { w.drop("binding refit-manager-pods") }, "policies", doctor.Warning, "refit-manager-pods"},
		"policies that may not be read": {func(_ *testing.T, w *world) { w.read["policies"] = forbidden }, "policies", doctor.Skipped, "may not read"},
		"policies of the daemon alone":  {func(_ *testing.T, w *world) { w.drop("manager"); w.drop("policy refit-manager-pods") }, "policies", doctor.OK, "6 of 6"},
		"without OpenKruise":            {func(*testing.T, *world) {}, "OpenKruise", doctor.OK, "not running"},
		"both managers":                 {func(_ *testing.T, w *world) { kruise(w) }, "OpenKruise", doctor.Warning, "both there"},
		"kruise-manager that is stopped": {func(_ *testing.T, w *world) {
			kruise(w)
			w.objects["kruise"].(*appsv1.Deployment).Spec.Replicas = new(int32(0))
		}, "OpenKruise", doctor.OK, "not running"},
		"manager beside kruise-manager": {func(_ *testing.T, w *world) { kruise(w, "--container-recreate-requests=false") }, "OpenKruise", doctor.OK, "its own"},
		"kruise-daemon on the same nodes": {func(_ *testing.T, w *world) {
			set := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "kruise-system", Name: "kruise-daemon", Labels: map[string]string{"control-plane": "daemon"}}}
			set.Status.CurrentNumberScheduled = 3
			w.add("kruise", set)
		}, "OpenKruise", doctor.Failed, "on 3 nodes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			tc.change(t, w)
			w.finds(t, tc.check, tc.result, tc.words)
		})
	}
}

// finds expects a finding with the words.
func (w *world) finds(t *testing.T, check string, result doctor.Result, words string) {
	t.Helper()
	var out bytes.Buffer
	err := doctor.Run(t.Context(), doctor.Config{API: w.client(t), System: "refit-system", Namespace: "shop", Version: "v1", Format: "json", Now: now}, &out)
	if errors.Is(err, doctor.ErrUnhealthy) != (result == doctor.Failed) {
		t.Errorf("error %v", err)
	}
	var findings []doctor.Finding
	if err := json.Unmarshal(out.Bytes(), &findings); err != nil {
		t.Fatal(err)
	}
	for _, finding := range findings {
		if finding.Check == check && finding.Result == result && strings.Contains(finding.Message, words) {
			return
		}
	}
	t.Errorf("no %s of %s with %q in:\n%s", result, check, words, out.String())
}

func TestText(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := doctor.Run(t.Context(), doctor.Config{API: newWorld(t).client(t), System: "refit-system", Namespace: "shop", Now: now}, &out); err != nil {
		t.Fatal(err)
	}
	const want = "ok       CRDs          11 of 11 are served\nok       manager       2 of 2 replicas are ready\nok       leader        a replica leads\nok       daemons       ready on 2 of 2 nodes\nok       versions      refit-manager v1, refit-daemon v1\n"
	if !strings.HasPrefix(out.String(), want) {
		t.Errorf("got:\n%s", out.String())
	}
}
