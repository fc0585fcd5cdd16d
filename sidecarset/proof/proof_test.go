package proof_test

import (
	"encoding/json"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/sidecarset/proof"
)

// pod with annotations, whose client has sent these fields.
func pod(annotations map[string]string, fields ...string) *corev1.Pod {
	p := &corev1.Pod{}
	p.Annotations = annotations
	for _, text := range fields {
		p.ManagedFields = append(p.ManagedFields, metav1.ManagedFieldsEntry{FieldsV1: metav1.NewFieldsV1(text)})
	}
	return p
}

func TestWhatTheClientHasSentIsNotTakenForTheWebhooks(t *testing.T) {
	t.Parallel()
	const container = `{"f:spec":{"f:containers":{".":{},"k:{\"name\":\"log\"}":{}}}}`
	for name, tc := range map[string]struct {
		pod  *corev1.Pod
		ours bool
	}{
		"nothing is known":                {pod(nil), false},
		"sent":                            {pod(nil, container), false},
		"sent, by the second entry":       {pod(nil, `{}`, container), false},
		"sent as an init container":       {pod(nil, `{"f:spec":{"f:initContainers":{"k:{\"name\":\"log\"}":{}}}}`), false},
		"another was sent":                {pod(nil, `{"f:spec":{"f:containers":{"k:{\"name\":\"app\"}":{}}}}`), true},
		"not readable":                    {pod(nil, `{"f:spec":{"f:containers":"x"}}`), false},
		"a key that is not readable":      {pod(nil, `{"f:spec":{"f:containers":{"k:x":{}}}}`), false},
		"no fields":                       {pod(nil, ``), false},
		"compared in this request":        {pod(map[string]string{proof.Keys[0]: "a,set"}, container), true},
		"another set was":                 {pod(map[string]string{proof.Keys[0]: "a,set2"}, container), false},
		"skipped in this request":         {pod(map[string]string{proof.Keys[0]: "-set"}, container), false},
		"the client says it was compared": {pod(map[string]string{proof.Keys[0]: "set"}, container, sentAnnotations(proof.Keys[0])), false},
		"the other key is the webhook's":  {pod(map[string]string{proof.Keys[1]: "set"}, container, sentAnnotations(proof.Keys[0])), true},
		"says so without managed fields":  {pod(map[string]string{proof.Keys[0]: "set"}), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := proof.Read(tc.pod).Ours("set", "log"); got != tc.ours {
				t.Errorf("%t", got)
			}
		})
	}
}

func TestTheRecordHasAKeyThatTheClientHasNotSent(t *testing.T) {
	t.Parallel()
	const list = "kruise.io/sidecarset-injected-list"
	for name, tc := range map[string]struct {
		pod        *corev1.Pod
		key, value string
		removed    []string
	}{
		"a pod without records":    {pod(nil, `{"f:spec":{}}`), "", "", nil},
		"no managed fields":        {pod(map[string]string{list: "a"}), "", "", nil},
		"records":                  {pod(nil, sentAnnotations(list)), proof.Keys[0], "-c,a,b", nil},
		"a key was sent":           {pod(nil, sentAnnotations(list, proof.Keys[0])), proof.Keys[1], "-c,a,b", proof.Keys[:1]},
		"only the key was sent":    {pod(nil, sentAnnotations(proof.Keys[1])), proof.Keys[0], "-c,a,b", proof.Keys[1:]},
		"both keys were sent":      {pod(map[string]string{proof.Keys[0]: "a"}, sentAnnotations(proof.Keys...)), "", "", proof.Keys},
		"a policy has noted a set": {pod(map[string]string{proof.Keys[0]: "b,p"}, sentAnnotations(list)), proof.Keys[0], "-c,a,b,p", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			key, value, removed := proof.Read(tc.pod).Record([]string{"b", "a"}, []string{"c"})
			if key != tc.key || value != tc.value || !slices.Equal(removed, tc.removed) {
				t.Errorf("%q %q, removed %q", key, value, removed)
			}
		})
	}
}

// Whatever is in the managed fields of a pod, reading them ends, and what is not readable proves nothing.
func FuzzManagedFields(f *testing.F) {
	f.Add([]byte(sentAnnotations(proof.Keys[0])))
	f.Add([]byte(`{"f:spec":{"f:containers":{"k:{\"name\":\"log\"}":{}}}}`))
	f.Fuzz(func(t *testing.T, fields []byte) {
		c := proof.Read(pod(map[string]string{proof.Keys[0]: "set"}, string(fields)))
		if !json.Valid(fields) && c.Ours("set", "log") {
			t.Error("believed")
		}
	})
}

func sentAnnotations(keys ...string) string {
	fields := map[string]any{}
	for _, key := range keys {
		fields["f:"+key] = map[string]any{}
	}
	text, err := json.Marshal(map[string]any{"f:metadata": map[string]any{"f:annotations": fields}})
	if err != nil {
		panic(err)
	}
	return string(text)
}
