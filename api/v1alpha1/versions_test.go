package v1alpha1_test

import (
	"encoding/json"
	"maps"
	"math/rand"
	"slices"
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
		"containerrecreaterequests": {func() any { return &v1alpha1.ContainerRecreateRequest{} }, func() any { return &v1beta1.ContainerRecreateRequest{} }},
		"podprobemarkers":           {func() any { return &v1alpha1.PodProbeMarker{} }, func() any { return &v1beta1.PodProbeMarker{} }},
		"nodepodprobes":             {func() any { return &v1alpha1.NodePodProbe{} }, func() any { return &v1beta1.NodePodProbe{} }},
		"nodeimages":                {func() any { return &v1alpha1.NodeImage{} }, func() any { return &v1beta1.NodeImage{} }},
		"imagepulljobs":             {func() any { return &v1alpha1.ImagePullJob{} }, func() any { return &v1beta1.ImagePullJob{} }},
		"imagelistpulljobs":         {func() any { return &v1alpha1.ImageListPullJob{} }, func() any { return &v1beta1.ImageListPullJob{} }},
		"sidecarsets":               {func() any { return &v1alpha1.SidecarSet{} }, func() any { return &v1beta1.SidecarSet{} }},
	}
}

// An object keeps its content when it is read in the other version and written back, in either direction.
func FuzzBothVersionsReadEachOther(f *testing.F) {
	all := kinds()
	plurals := slices.Sorted(maps.Keys(all))
	for i := range plurals {
		for seed := range int64(50) {
			f.Add(uint(i), seed, true)
			f.Add(uint(i), seed, false)
		}
	}
	f.Fuzz(func(t *testing.T, i uint, seed int64, fromBeta bool) {
		plural := plurals[i%uint(len(plurals))]
		one, other := all[plural][0], all[plural][1]
		if fromBeta {
			one, other = other, one
		}
		filled, first, second, again := one(), one(), other(), one()
		filler(seed).Fill(filled)
		convert(t, filled, first) // empty maps and lists are left out from here on
		convert(t, first, second)
		convert(t, second, again)
		if diff := cmp.Diff(first, again); diff != "" {
			t.Errorf("%s: %s", plural, diff)
		}
	})
}

var codecs = serializer.NewCodecFactory(runtime.NewScheme())

func filler(seed int64) *randfill.Filler {
	return fuzzer.FuzzerFor(fuzzer.MergeFuzzerFuncs(genericfuzzer.Funcs, func(serializer.CodecFactory) []any {
		return []any{
			func(v *intstr.IntOrString, c randfill.Continue) { *v = intstr.FromInt32(c.Int31()) },
			func(v *v1beta1.UnknownFields, c randfill.Continue) {
				if *v = nil; c.Bool() {
					*v = v1beta1.UnknownFields{"futureField": json.RawMessage(`{"a":[1,null]}`)}
				}
			},
		}
	}), rand.NewSource(seed), codecs)
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
