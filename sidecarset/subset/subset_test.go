package subset_test

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/refit-project/refit/sidecarset/subset"
)

func TestDefaultsAndOtherWebhooksAreNoDifference(t *testing.T) {
	t.Parallel()
	wanted := corev1.Container{
		Name: "a", Image: "a:1", Args: []string{"-x"}, Env: []corev1.EnvVar{{Name: "A", Value: "1"}},
		VolumeMounts: []corev1.VolumeMount{{Name: "v", MountPath: "/v"}},
		Resources:    corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("0.5")}},
	}
	for has, want := range map[string]bool{
		`{"name":"a","image":"a:1","args":["-x"],"env":[{"name":"B","value":"2"},{"name":"A","value":"1"}],"volumeMounts":[{"name":"token","mountPath":"/t"},{"name":"v","mountPath":"/v","readOnly":false}],"resources":{"limits":{"cpu":"500m","memory":"1Gi"}},"imagePullPolicy":"Always"}`: true,
		`{"name":"a","image":"a:2","args":["-x"],"env":[{"name":"A","value":"1"}],"volumeMounts":[{"name":"v","mountPath":"/v"}],"resources":{"limits":{"cpu":"500m"}}}`:                                                                                                                       false,
		`{"name":"a","image":"a:1","args":["-x","-y"],"env":[{"name":"A","value":"1"}],"volumeMounts":[{"name":"v","mountPath":"/v"}],"resources":{"limits":{"cpu":"500m"}}}`:                                                                                                                  false,
		`{"name":"a","image":"a:1","args":["-x"],"env":[{"name":"A","value":"2"}],"volumeMounts":[{"name":"v","mountPath":"/v"}],"resources":{"limits":{"cpu":"500m"}}}`:                                                                                                                       false,
		`{"name":"a","image":"a:1","args":["-x"],"env":[{"name":"A","value":"1"}],"volumeMounts":[{"name":"w","mountPath":"/v"}],"resources":{"limits":{"cpu":"500m"}}}`:                                                                                                                       false,
		`not JSON`: false,
	} {
		if got := subset.Covers([]byte(has), wanted); got != want {
			t.Errorf("%t for %s", got, has)
		}
	}
}

func TestAnEmptyVolumeSourceIsNotAnotherOne(t *testing.T) {
	t.Parallel()
	wanted := corev1.Volume{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}
	if subset.Covers([]byte(`{"name":"v","hostPath":{"path":"/"}}`), wanted) {
		t.Error("hostPath is taken for emptyDir")
	}
	if !subset.Covers([]byte(`{"name":"v","emptyDir":{"medium":""}}`), wanted) {
		t.Error("emptyDir is not")
	}
}

func TestWhatIsMissingOrAnotherIsADifference(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		has, wanted string
		want        bool
	}{
		"resources that are empty":              {`{}`, `{"resources":{}}`, true},
		"resources that are not":                {`{}`, `{"resources":{"limits":{"cpu":"1"}}}`, false},
		"another empty object":                  {`{}`, `{"emptyDir":{}}`, false},
		"number":                                {`{"port":80}`, `{"port":81}`, false},
		"same number":                           {`{"port":80}`, `{"port":80}`, true},
		"list that is missing":                  {`{}`, `{"env":[{"name":"A"}]}`, false},
		"element that is missing":               {`{"env":[{"name":"B"}]}`, `{"env":[{"name":"A"}]}`, false},
		"one of two is missing":                 {`{"env":[{"name":"A"}]}`, `{"env":[{"name":"A"},{"name":"B"}]}`, false},
		"first of two is another":               {`{"env":[{"name":"A","value":"2"},{"name":"B"}]}`, `{"env":[{"name":"A","value":"1"},{"name":"B"}]}`, false},
		"list without a key, in another order":  {`{"args":["b","a"]}`, `{"args":["a","b"]}`, false},
		"empty list":                            {`{"env":[]}`, `{"env":[]}`, true},
		"empty list that is not wanted empty":   {`{"env":[{"name":"A"}]}`, `{"env":[]}`, false},
		"names that are twice":                  {`{"env":[{"name":"A","value":"1"},{"name":"A","value":"2"}]}`, `{"env":[{"name":"A","value":"1"},{"name":"A","value":"2"}]}`, true},
		"names that are twice, others":          {`{"env":[{"name":"A","value":"1"},{"name":"A","value":"3"}]}`, `{"env":[{"name":"A","value":"1"},{"name":"A","value":"2"}]}`, false},
		"object in the place of an element":     {`{"env":{"name":"A"}}`, `{"env":[{"name":"A"}]}`, false},
		"quantities":                            {`{"cpu":"1"}`, `{"cpu":"1000m"}`, true},
		"other quantities":                      {`{"cpu":"1"}`, `{"cpu":"100m"}`, false},
		"quantity and text":                     {`{"cpu":"0"}`, `{"cpu":"zero"}`, false},
		"text and quantity":                     {`{"cpu":"zero"}`, `{"cpu":"0"}`, false},
		"elements that are found by their path": {`{"volumeMounts":[{"name":"v","mountPath":"/b"},{"name":"v","mountPath":"/a"}]}`, `{"volumeMounts":[{"name":"v","mountPath":"/a"}]}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := subset.Covers([]byte(tc.has), json.RawMessage(tc.wanted)); got != tc.want {
				t.Errorf("%v", got)
			}
		})
	}
}
