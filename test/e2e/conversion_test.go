package e2e_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/test/kit/markdown"
)

// TestRequestsAreKeptWhenTheConversionWebhookIsRemoved is the upgrade from a CRD with a conversion webhook, by the command of
// docs/install.md. It is not parallel, as the CRD is everybody's: parallel tests begin when this one has ended.
func TestRequestsAreKeptWhenTheConversionWebhookIsRemoved(t *testing.T) {
	s := newFixture(t)
	s.needsOwnCluster(t)
	s.start(s.podOf("web", shell("app", obedient)))
	s.ask("before", "web/app")
	s.succeeded("before")
	s.withConversionWebhook("before")

	s.ask("r", "web/app")
	s.succeeded("r")
	s.awaitRequest("r", "to be left alone", func(r *request) bool { return r.Labels[v1beta1.LabelActive] == "" })
	// What the webhook showed as annotations to clients of v1alpha1 was stored in the status alone.
	s.await("what a manager hands over", func(ctx context.Context) (bool, error) {
		r := &request{}
		if err := s.Get(ctx, s.key("r"), r); err != nil {
			return false, err
		}
		r.Status.ContainerStatusSnapshot = []v1beta1.ContainerStatusSnapshot{{Name: "app", Ready: true, RestartCount: 2, ContainerID: "containerd://0002"}}
		v1beta1.SetPreRecreateGrace(&r.Status, time.Now(), v1beta1.MessagePreRecreateGrace)
		return s.Status().Update(ctx, r) == nil, nil
	})
	stored, err := s.inVersion(t.Context(), "v1beta1", "r")
	s.check(err, "read the request as it is stored")
	if _, err := s.inVersion(t.Context(), "v1alpha1", "r"); err == nil {
		t.Error("v1alpha1 was read without the conversion webhook")
	}

	for _, command := range s.documented("install.md", t.Name()) {
		s.run(command[1:]...)
	}
	s.run("apply", "--server-side", "--filename", filepath.Join(root(), "deploy", "crd", "apps.kruise.io_containerrecreaterequests.yaml"))
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		diff := "never read"
		err := until(t.Context(), patience, func(ctx context.Context) (bool, error) {
			got, err := s.inVersion(ctx, version, "r")
			if err == nil {
				diff = cmp.Diff(stored, got)
			}
			return diff == "", nil // the API server takes a moment to use the new manifest
		})
		if err != nil {
			t.Errorf("in %s %v (-stored +read):\n%s", version, err, diff)
		}
	}
}

// withConversionWebhook makes the CRD like the CRD of earlier commits until the test ends: v1alpha1 has a schema of its own, and
// a webhook converts, which nobody serves any more. An existing request tells when the API server has taken over the CRD.
func (s *fixture) withConversionWebhook(existing string) {
	s.t.Helper()
	full := s.stored("crd/" + requestCRD)
	earlier := full.DeepCopy()
	versions, _, err := unstructured.NestedSlice(earlier.Object, "spec", "versions")
	s.check(err, "versions of the CRD")
	alpha := slices.IndexFunc(versions, func(v any) bool { return v.(map[string]any)["name"] == "v1alpha1" })
	for _, field := range []string{"conditions", "containerStatusSnapshot"} {
		unstructured.RemoveNestedField(versions[alpha].(map[string]any), "schema", "openAPIV3Schema", "properties", "status", "properties", field)
	}
	unstructured.RemoveNestedField(versions[alpha].(map[string]any), "additionalPrinterColumns")
	s.check(unstructured.SetNestedSlice(earlier.Object, versions, "spec", "versions"), "versions of the CRD")
	conversion := map[string]any{"strategy": "Webhook", "webhook": map[string]any{
		"clientConfig":             map[string]any{"service": map[string]any{"name": "refit-manager-webhook", "namespace": systemNamespace, "path": "/convert"}},
		"conversionReviewVersions": []any{"v1"},
	}}
	s.check(unstructured.SetNestedMap(earlier.Object, conversion, "spec", "conversion"), "conversion of the CRD")

	ctx := context.WithoutCancel(s.t.Context())
	s.t.Cleanup(func() {
		s.kubectlOrFail(ctx, s.text(full), "replace", "--filename", "-")
		if err := s.alphaReadable(ctx, existing, true); err != nil {
			s.t.Errorf("put the CRD back: %v", err)
		}
	})
	s.kubectlOrFail(ctx, s.text(earlier), "apply", "--server-side", "--force-conflicts", "--filename", "-")
	// The manager of earlier commits wrote the authority into the CRD, and so owned fields of the conversion.
	authority := s.run("get", "mutatingwebhookconfiguration/refit-manager", "--output=jsonpath={.webhooks[0].clientConfig.caBundle}")
	s.run("patch", "crd", requestCRD, "--field-manager=refit-manager", "--type=merge",
		"--patch", `{"spec":{"conversion":{"webhook":{"clientConfig":{"caBundle":"`+authority+`"}}}}}`)
	s.check(s.alphaReadable(ctx, existing, false), "wait for the conversion webhook")
}

// alphaReadable waits until a request can be read in v1alpha1, or not.
func (s *fixture) alphaReadable(ctx context.Context, name string, readable bool) error {
	return until(ctx, patience, func(ctx context.Context) (bool, error) {
		_, err := s.inVersion(ctx, "v1alpha1", name)
		return (err == nil) == readable, nil
	})
}

// inVersion reads a request in a version, without what names the version.
func (s *fixture) inVersion(ctx context.Context, version, name string) (map[string]any, error) {
	out, err := s.kubectl(ctx, "", "--namespace", s.namespace, "get", "containerrecreaterequests."+version+".apps.kruise.io", name, "--output=json")
	if err != nil {
		return nil, err
	}
	var object unstructured.Unstructured
	if err := json.Unmarshal([]byte(out), &object.Object); err != nil {
		return nil, err
	}
	if got := object.GetAPIVersion(); got != "apps.kruise.io/"+version {
		s.t.Errorf("asked for %s, read %s", version, got)
	}
	unstructured.RemoveNestedField(object.Object, "apiVersion")
	unstructured.RemoveNestedField(object.Object, "metadata", "managedFields")
	return object.Object, nil
}

// documented are the commands of a page that are marked as tested by that test.
func (s *fixture) documented(page, test string) [][]string {
	s.t.Helper()
	blocks, err := markdown.Read(filepath.Join(root(), "docs", page))
	s.check(err, "read %s", page)
	i := slices.IndexFunc(blocks, func(b markdown.Block) bool { return b.Mark == markdown.By && b.Value == test })
	if i < 0 {
		s.t.Fatalf("%s has no commands that %s runs", page, test)
	}
	commands, err := markdown.Commands(blocks[i].Text)
	s.check(err, "read the commands of %s", blocks[i])
	return commands
}
