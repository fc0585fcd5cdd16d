package crd_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
)

// What kruise-manager of OpenKruise 07169cfac stores of the same jobs. It also sets imagePullPolicy IfNotPresent in an ImagePullJob.
func TestPullJobsAreStoredWithTheDefaultsOfOpenKruise(t *testing.T) {
	t.Parallel()
	for plural, spec := range map[string]string{"imagepulljobs": "image: a", "imagelistpulljobs": "images: [a]"} {
		for written, stored := range map[string]string{
			"{" + spec + "}": "{" + spec + ", pullPolicy: {timeoutSeconds: 600, backoffLimit: 3}, completionPolicy: {type: Always}}",
			"{" + spec + ", pullPolicy: {backoffLimit: 0}, completionPolicy: {ttlSecondsAfterFinished: 1}}": "{" + spec +
				", pullPolicy: {timeoutSeconds: 600, backoffLimit: 0}, completionPolicy: {type: Always, ttlSecondsAfterFinished: 1}}",
			"{" + spec + ", completionPolicy: {type: Never}}": "{" + spec + ", pullPolicy: {timeoutSeconds: 600, backoffLimit: 3}, completionPolicy: {type: Never}}",
		} {
			object := decode(t, "{spec: "+written+"}")
			for _, version := range []string{"v1alpha1", "v1beta1"} {
				defaulting.Default(object, readRules(t, plural, version).structural)
				if diff := cmp.Diff(decode(t, "{spec: "+stored+"}"), object); diff != "" {
					t.Errorf("%s of %s, -want +got:\n%s", plural, version, diff)
				}
			}
		}
	}
}

// OpenKruise's CRD has no default here, and its hashes tell "" from nothing.
func TestProbesWithoutAServiceStayWithout(t *testing.T) {
	t.Parallel()
	const spec = `{metadata: {name: a}, spec: {selector: {matchLabels: {a: b}}, containers: [{name: a, image: a, livenessProbe: {grpc: {port: 1}}, readinessProbe: {grpc: {port: 1, service: null}}}]}}`
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		r, object := readRules(t, "sidecarsets", version), decode(t, spec)
		defaulting.PruneNonNullableNullsWithoutDefaults(object, r.structural)
		defaulting.Default(object, r.structural)
		if diff := cmp.Diff(decode(t, spec), object); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		refused(t, r.validate(t, object, nil))
	}
}
