package proof_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
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

// What the API server adds to every container is no forgery; anything else would be.
func TestWhatTheAPIServerAddsIsExpected(t *testing.T) {
	t.Parallel()
	spool := corev1.VolumeMount{Name: "spool", MountPath: "/spool"}
	token := corev1.VolumeMount{Name: "kube-api-access-x", MountPath: "/var/run/secrets/kubernetes.io/serviceaccount", ReadOnly: true}
	with := func(change func(*corev1.VolumeMount)) corev1.VolumeMount {
		m := token
		change(&m)
		return m
	}
	for name, tc := range map[string]struct {
		mounts   []corev1.VolumeMount // that the pod's container has
		expected int                  // mounts that it may have
	}{
		"as injected":           {[]corev1.VolumeMount{spool}, 1},
		"with the token":        {[]corev1.VolumeMount{spool, token}, 2},
		"the token first":       {[]corev1.VolumeMount{token, spool}, 1},
		"the token, and more":   {[]corev1.VolumeMount{spool, {Name: "x", MountPath: "/x"}, token}, 1},
		"another one":           {[]corev1.VolumeMount{spool, {Name: "x", MountPath: "/x"}}, 1},
		"of another volume":     {[]corev1.VolumeMount{spool, with(func(m *corev1.VolumeMount) { m.Name = "evil" })}, 1},
		"somewhere else":        {[]corev1.VolumeMount{spool, with(func(m *corev1.VolumeMount) { m.MountPath = "/usr" })}, 1},
		"that can be written":   {[]corev1.VolumeMount{spool, with(func(m *corev1.VolumeMount) { m.ReadOnly = false })}, 1},
		"a part of the volume":  {[]corev1.VolumeMount{spool, with(func(m *corev1.VolumeMount) { m.SubPath = "x" })}, 1},
		"the token and no more": {[]corev1.VolumeMount{token}, 1},
	} {
		injected := &corev1.Container{VolumeMounts: []corev1.VolumeMount{spool}}
		got := proof.Read(pod(nil)).Expected(&corev1.Container{VolumeMounts: tc.mounts}, injected)
		if len(got.VolumeMounts) != tc.expected || !cmp.Equal(got.VolumeMounts[0], spool) || len(injected.VolumeMounts) != 1 {
			t.Errorf("%s: %+v", name, got.VolumeMounts)
		}
	}
	injected := &corev1.Container{ImagePullPolicy: corev1.PullIfNotPresent, Ports: []corev1.ContainerPort{{ContainerPort: 80}, {ContainerPort: 81, HostPort: 82}}}
	for _, host := range []bool{false, true} {
		p := pod(nil)
		p.Spec.HostNetwork = host
		for _, policy := range []corev1.PullPolicy{corev1.PullAlways, corev1.PullNever, ""} {
			want := injected.DeepCopy()
			if host {
				want.Ports[0].HostPort = 80
			}
			if policy == corev1.PullAlways {
				want.ImagePullPolicy = corev1.PullAlways
			}
			if diff := cmp.Diff(want, proof.Read(p).Expected(&corev1.Container{ImagePullPolicy: policy}, injected)); diff != "" {
				t.Errorf("host network %t, pull policy %q (-want +got):\n%s", host, policy, diff)
			}
		}
	}
}

// A volume may have more than the SidecarSet's only if other webhooks have added it.
func TestAVolumeOfAPodIsThatOfTheSidecarSetOnlyIfItIsTheSame(t *testing.T) {
	t.Parallel()
	const sent, other = `{"f:spec":{"f:volumes":{"k:{\"name\":\"spool\"}":{}}}}`, `{"f:spec":{"f:volumes":{"k:{\"name\":\"x\"}":{}}}}`
	wanted := &corev1.Volume{Name: "spool", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}
	const same, more, another = `{"name":"spool","emptyDir":{}}`, `{"name":"spool","emptyDir":{"medium":"Memory"}}`, `{"name":"spool","hostPath":{"path":"/"}}`
	for name, tc := range map[string]struct {
		pod     *corev1.Pod
		carried bool
		more    bool // it may have more
	}{
		"the pod makes no claim":            {pod(nil, other), false, false},
		"the client has not sent it":        {pod(nil, other), true, true},
		"the client has sent it":            {pod(nil, sent), true, false},
		"it was compared in this request":   {pod(map[string]string{proof.Keys[0]: "set"}, sent), true, true},
		"compared, and the pod claims none": {pod(map[string]string{proof.Keys[0]: "set"}, sent), false, false},
		"there are no managed fields":       {pod(nil), true, false},
	} {
		for has, want := range map[string]bool{same: true, more: tc.more, another: false} {
			if got := proof.Read(tc.pod).SameVolume("set", tc.carried, []byte(has), wanted); got != want {
				t.Errorf("%s: %s is the same: %t", name, has, got)
			}
		}
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
