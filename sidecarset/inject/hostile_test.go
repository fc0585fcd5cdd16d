package inject_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/sidecarset/inject"
	"github.com/refit-project/refit/test/kit/hostile"
	"github.com/refit-project/refit/test/kit/watchdog"
)

// everything is a SidecarSet that looks at much of a pod.
const everything = `{"metadata":{"name":"log"},"spec":{"selector":{"matchLabels":{"app":"web"}},
	"injectionStrategy":{"allowedPodOverrides":["Image","Resources"]},
	"containers":[{"name":"agent","image":"agent:1","shareVolumePolicy":{"type":"enabled"},"transferEnv":[{"sourceContainerName":"app","envNames":["A"]}]}],
	"initContainers":[{"name":"first","image":"first:1"}],"volumes":[{"name":"logs","emptyDir":{"sizeLimit":"1Gi"}}],
	"patchContainers":[{"containers":["*"],"env":[{"name":"B","value":"b"}],"volumeMounts":[{"name":"logs","mountPath":"/logs"}]}]}}`

func compiled(t testing.TB) inject.Plan {
	t.Helper()
	var set v1beta1.SidecarSet
	if err := json.Unmarshal([]byte(everything), &set); err != nil {
		t.Fatal(err)
	}
	of, err := inject.Compile(&set, "")
	if err != nil {
		t.Fatal(err)
	}
	return inject.Plan{Sets: []*inject.Set{of}}
}

func TestAPodOutOfBoundsIsRefusedWithTheReason(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ pod, why string }{
		"a quantity":           {`{"spec":{"containers":[{"name":"app","resources":{"requests":{"cpu":"1e-300000000"}}}]}}`, "spec: containers: resources: requests: cpu: not readable"},
		"a divisor":            {`{"spec":{"containers":[{"name":"app","env":[{"name":"A","valueFrom":{"resourceFieldRef":{"resource":"limits.cpu","divisor":"1e300000000"}}}]}]}}`, "divisor: not readable"},
		"many containers":      {`{"spec":{"containers":[` + strings.Repeat(`{},`, 20_000) + `{}]}}`, "more than 10000 elements"},
		"levels":               {`{"spec":` + strings.Repeat(`{"a":`, 10_000) + `1` + strings.Repeat(`}`, 10_000) + `}`, "64 levels"},
		"resources of sidecar": {`{"metadata":{"annotations":{"` + v1beta1.PrefixSidecarResources + `agent":"{\"limits\":{\"cpu\":\"1e2147483647\"}}"}},"spec":{"containers":[{"name":"app"}]}}`, "exponent"},
	} {
		watchdog.Watch(t, func() {
			_, err := inject.Apply([]byte(tc.pod), compiled(t), now)
			var refused *inject.Refusal
			if !errors.As(err, &refused) || !strings.Contains(err.Error(), tc.why) || len(err.Error()) > 600 {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}

// FuzzHostilePods makes pods of their parts: they are injected or refused, and what is written is no larger than what there was.
func FuzzHostilePods(f *testing.F) {
	for _, seed := range hostile.Seeds() {
		f.Add(seed, "")
	}
	f.Add([]byte{1}, `{"limits":{"cpu":"1e300000000"}}`)
	f.Add([]byte{1}, strings.Repeat(`{"limits":`, 10_000))
	f.Add([]byte{}, `{"limits":null,"limits":{"cpu":"1e-300000000"}}`)
	plan := compiled(f)
	f.Fuzz(func(t *testing.T, seed []byte, resources string) {
		pod := hostile.JSON(&corev1.Pod{}, seed)
		if quoted, err := json.Marshal(resources); err == nil && resources != "" {
			pod = append([]byte(`{"metadata":{"annotations":{"`+v1beta1.PrefixSidecarResources+`agent":`+string(quoted)+`}},`), pod[min(1, len(pod)):]...)
		}
		watchdog.Watch(t, func() {
			result, err := inject.Apply(pod, plan, now)
			if err != nil {
				return
			}
			patch, err := json.Marshal(result.Patch)
			if err != nil {
				t.Fatalf("encode the patch: %v", err)
			}
			if len(patch) > 10*(len(pod)+len(everything)+len(resources)) {
				t.Errorf("a patch of %d bytes for a pod of %d", len(patch), len(pod))
			}
		})
	})
}
