package e2e_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/refit-project/refit/api/v1beta1"
)

// ours are the fields of Refit that OpenKruise's CRDs lack, by CRD.
var ours = map[string][][]string{
	"imagepulljobs.apps.kruise.io": {{"status", "properties", "conditions"}},
	"nodeimages.apps.kruise.io": {
		{"status", "properties", "imageStatuses", "additionalProperties", "properties", "tags", "items", "properties", "pulledBytes"},
		{"status", "properties", "imageStatuses", "additionalProperties", "properties", "tags", "items", "properties", "totalBytes"},
	},
}

// withoutOurs takes fields from a CRD until the test ends.
func (s *fixture) withoutOurs(name string, fields [][]string) {
	s.t.Helper()
	var full unstructured.Unstructured
	s.check(json.Unmarshal([]byte(s.run("get", "crd", name, "--output=json")), &full.Object), "decode CRD")
	unstructured.RemoveNestedField(full.Object, "metadata", "resourceVersion")
	pruned := full.DeepCopy()
	versions, _, err := unstructured.NestedSlice(pruned.Object, "spec", "versions")
	s.check(err, "versions of CRD %s", name)
	for _, version := range versions {
		for _, field := range fields {
			path := append([]string{"schema", "openAPIV3Schema", "properties"}, field...)
			if _, found, err := unstructured.NestedMap(version.(map[string]any), path...); !found || err != nil {
				s.t.Fatalf("CRD %s has no field %s: %v", name, strings.Join(field, "."), err)
			}
			unstructured.RemoveNestedField(version.(map[string]any), path...)
		}
	}
	s.check(unstructured.SetNestedSlice(pruned.Object, versions, "spec", "versions"), "versions of CRD %s", name)
	put := func(ctx context.Context, crd *unstructured.Unstructured) error {
		text, err := json.Marshal(crd.Object)
		if err != nil {
			return err
		}
		out, err := s.kubectl(ctx, string(text), "replace", "--filename", "-")
		if err != nil {
			s.t.Logf("%s", out)
		}
		return err
	}
	s.t.Cleanup(func() {
		if err := put(context.WithoutCancel(s.t.Context()), &full); err != nil {
			s.t.Errorf("put CRD %s back: %v", name, err)
		}
	})
	s.check(put(s.t.Context(), pruned), "replace CRD %s", name)
}

// TestImagesUnderOpenKruisesCRDs takes from the CRDs what OpenKruise's lack: jobs end, the tool follows them, and the daemon
// does not write again and again what is not stored. It is not parallel: the CRDs are everybody's.
func TestImagesUnderOpenKruisesCRDs(t *testing.T) {
	s := newFixture(t)
	s.needsOwnCluster(t)
	s.pull("before", image, nil)
	s.waitFor("Complete", "before")
	for name, fields := range ours {
		s.withoutOurs(name, fields)
	}
	s.await("API server to drop our fields", func(ctx context.Context) (bool, error) {
		job := &v1beta1.ImagePullJob{}
		err := s.Get(ctx, s.key("before"), job)
		return err == nil && len(job.Status.Conditions) == 0, err
	})
	writes := s.statusWrites()
	s.pull("after", image, nil)
	job := &v1beta1.ImagePullJob{}
	s.await("end of the job", func(ctx context.Context) (bool, error) {
		err := s.Get(ctx, s.key("after"), job)
		return job.Status.CompletionTime != nil, err
	})
	if job.Status.Succeeded != int32(len(s.nodes)) || len(job.Status.Conditions) > 0 {
		t.Errorf("%+v", job.Status)
	}
	before := s.gated(s.podOf("web", shell("app", obedient)))
	said := s.updates("image", "pod/web", "app="+newImage)
	if !strings.Contains(said, "has the new images") {
		t.Errorf("said:\n%s", said)
	}
	s.restarted(before, "app", 1)
	for node, n := range writes() {
		s.observed("node %s: %d writes of the status for two jobs", node, n)
		if n > 2*maxStatusWrites {
			t.Errorf("%d writes of the status on node %s", n, node)
		}
	}
}
