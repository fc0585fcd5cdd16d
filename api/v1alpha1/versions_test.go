package v1alpha1_test

import (
	"encoding/json"
	"math/rand"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	genericfuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/randfill"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
)

// kinds pairs the two versions of each kind that the API server converts by changing apiVersion alone.
func kinds() map[string][2]func() any {
	return map[string][2]func() any{
		"podprobemarkers":   {func() any { return &v1alpha1.PodProbeMarker{} }, func() any { return &v1beta1.PodProbeMarker{} }},
		"nodepodprobes":     {func() any { return &v1alpha1.NodePodProbe{} }, func() any { return &v1beta1.NodePodProbe{} }},
		"nodeimages":        {func() any { return &v1alpha1.NodeImage{} }, func() any { return &v1beta1.NodeImage{} }},
		"imagepulljobs":     {func() any { return &v1alpha1.ImagePullJob{} }, func() any { return &v1beta1.ImagePullJob{} }},
		"imagelistpulljobs": {func() any { return &v1alpha1.ImageListPullJob{} }, func() any { return &v1beta1.ImageListPullJob{} }},
		"sidecarsets":       {func() any { return &v1alpha1.SidecarSet{} }, func() any { return &v1beta1.SidecarSet{} }},
	}
}

func TestBothVersionsReadEachOther(t *testing.T) {
	t.Parallel()
	random := fuzzer.FuzzerFor(fuzzer.MergeFuzzerFuncs(genericfuzzer.Funcs, func(serializer.CodecFactory) []any {
		return []any{
			func(v *intstr.IntOrString, c randfill.Continue) { *v = intstr.FromInt32(c.Int31()) },
			func(v *v1beta1.UnknownFields, c randfill.Continue) {
				if *v = nil; c.Bool() {
					*v = v1beta1.UnknownFields{"futureField": json.RawMessage(`{"a":[1,null]}`)}
				}
			},
		}
	}), rand.NewSource(1), serializer.NewCodecFactory(runtime.NewScheme()))
	for plural, versions := range kinds() {
		for range 200 {
			filled, alpha, beta, again := versions[0](), versions[0](), versions[1](), versions[0]()
			random.Fill(filled)
			convert(t, filled, alpha) // empty maps and lists are left out from here on
			convert(t, alpha, beta)
			convert(t, beta, again)
			if diff := cmp.Diff(alpha, again); diff != "" {
				t.Fatalf("%s: %s", plural, diff)
			}
		}
	}
}

// convert does what the API server does between versions without a webhook.
func convert(t *testing.T, from, to any) {
	t.Helper()
	data, err := json.Marshal(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, to); err != nil {
		t.Fatal(err)
	}
}
