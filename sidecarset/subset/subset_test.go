package subset_test

import (
	"encoding/json"
	"strings"
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

// Text is text: 1.10 is another version than 1.1, and 1e300000000 is not computed.
func TestQuantitiesAreComparedOnlyWhereTheAPIHasThem(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		object string
		a, b   string
		want   bool
	}{
		"variable":           {`{"env":[{"name":"A","value":"%"}]}`, "1.1", "1.10", false},
		"argument":           {`{"image":"a","args":["%"]}`, "1000", "1k", false},
		"label":              {`{"name":"v","ephemeral":{"volumeClaimTemplate":{"metadata":{"labels":{"requests":"%"}}}}}`, "1", "1000m", false},
		"limit":              {`{"image":"a","resources":{"limits":{"cpu":"%"}}}`, "1", "1000m", true},
		"request":            {`{"image":"a","resources":{"requests":{"memory":"%"}}}`, "1Ki", "1024", true},
		"rounded up":         {`{"image":"a","resources":{"requests":{"cpu":"%"}}}`, "100u", "1m", true},
		"suffix E":           {`{"image":"a","resources":{"requests":{"memory":"%"}}}`, "1E", "1000P", true},
		"small exponent":     {`{"image":"a","resources":{"requests":{"memory":"%"}}}`, "1e3", "1k", true},
		"request of a claim": {`{"name":"v","ephemeral":{"volumeClaimTemplate":{"spec":{"resources":{"requests":{"storage":"%"}}}}}}`, "1Gi", "1024Mi", true},
		"size limit":         {`{"name":"v","emptyDir":{"sizeLimit":"%"}}`, "1Gi", "1024Mi", true},
		"divisor":            {`{"image":"a","env":[{"name":"A","valueFrom":{"resourceFieldRef":{"divisor":"%"}}}]}`, "1", "1000m", true},
		"huge":               {`{"image":"a","resources":{"limits":{"cpu":"%"}}}`, "1e300000000", "1", false},
		"overflow":           {`{"image":"a","resources":{"limits":{"cpu":"%"}}}`, "1e2147483647", "1m", false},
		"tiny":               {`{"image":"a","resources":{"limits":{"cpu":"%"}}}`, "1e-300000000", "1m", false},
		"large exponent":     {`{"image":"a","resources":{"limits":{"cpu":"%"}}}`, "1E300000000", "1m", false},
		"long":               {`{"image":"a","resources":{"limits":{"cpu":"%"}}}`, strings.Repeat("9", 100000), "1m", false},
		"huge, twice":        {`{"image":"a","resources":{"limits":{"cpu":"%"}}}`, "1e300000000", "1e300000000", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, b := strings.ReplaceAll(tc.object, "%", tc.a), strings.ReplaceAll(tc.object, "%", tc.b)
			for _, pair := range [][2]string{{a, b}, {b, a}} {
				if got := subset.Equal([]byte(pair[0]), json.RawMessage(pair[1])); got != tc.want {
					t.Errorf("equal: %t", got)
				}
				if got := subset.Covers([]byte(pair[0]), json.RawMessage(pair[1])); got != tc.want {
					t.Errorf("covers: %t", got)
				}
			}
		})
	}
}

func TestNothingMayBeMoreThanTheDefaultsOfTheAPIServer(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		has, wanted string
		want        bool
	}{
		"pull policy of a tag":         {`{"image":"r:5000/a:1","imagePullPolicy":"IfNotPresent"}`, `{"image":"r:5000/a:1"}`, true},
		"pull policy of a digest":      {`{"image":"a@sha256:b","imagePullPolicy":"IfNotPresent"}`, `{"image":"a@sha256:b"}`, true},
		"pull policy without a tag":    {`{"image":"r:5000/a","imagePullPolicy":"Always"}`, `{"image":"r:5000/a"}`, true},
		"pull policy of latest":        {`{"image":"a:latest","imagePullPolicy":"IfNotPresent"}`, `{"image":"a:latest"}`, false},
		"requests as limits":           {`{"image":"a","resources":{"limits":{"cpu":"1"},"requests":{"cpu":"1"}}}`, `{"image":"a","resources":{"limits":{"cpu":"1"}}}`, true},
		"other requests than limits":   {`{"image":"a","resources":{"limits":{"cpu":"1"},"requests":{"cpu":"2"}}}`, `{"image":"a","resources":{"limits":{"cpu":"1"}}}`, false},
		"resources that are missing":   {`{"image":"a"}`, `{"image":"a","resources":{}}`, true},
		"volume of the default source": {`{"name":"v","emptyDir":{}}`, `{"name":"v"}`, true},
		"image volume":                 {`{"name":"v","image":{"reference":"a:1","pullPolicy":"IfNotPresent"}}`, `{"name":"v","image":{"reference":"a:1"}}`, true},
		"mode of a secret":             {`{"name":"v","secret":{"secretName":"a","defaultMode":420}}`, `{"name":"v","secret":{"secretName":"a"}}`, true},
		"another mode":                 {`{"name":"v","secret":{"secretName":"a","defaultMode":511}}`, `{"name":"v","secret":{"secretName":"a"}}`, false},
		"optional":                     {`{"name":"v","configMap":{"name":"a","defaultMode":420,"optional":true}}`, `{"name":"v","configMap":{"name":"a"}}`, false},
		"one more source":              {`{"name":"v","projected":{"sources":[{"secret":{"name":"a"}},{"secret":{"name":"b"}}]}}`, `{"name":"v","projected":{"sources":[{"secret":{"name":"a"}}]}}`, false},
		"root is not nobody":           {`{"image":"a","securityContext":{"runAsUser":0}}`, `{"image":"a","securityContext":{}}`, false},
		"large user ID":                {`{"image":"a","securityContext":{"runAsUser":9007199254740993}}`, `{"image":"a","securityContext":{"runAsUser":9007199254740992}}`, false},
		"order of variables":           {`{"image":"a","env":[{"name":"B"},{"name":"A"}]}`, `{"image":"a","env":[{"name":"A"},{"name":"B"}]}`, false},
		"claim":                        {`{"name":"v","ephemeral":{"volumeClaimTemplate":{"metadata":{"creationTimestamp":null},"spec":{"volumeMode":"Filesystem"}}}}`, `{"name":"v","ephemeral":{"volumeClaimTemplate":{"metadata":{},"spec":{}}}}`, true},
		"not JSON":                     {`x`, `{}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := subset.Equal([]byte(tc.has), json.RawMessage(tc.wanted)); got != tc.want {
				t.Errorf("%v", got)
			}
		})
	}
}

// The API server adds them when the pod is created, and a pod that a client sends again has them.
func TestDefaultsOfTheAPIServerAreNoDifference(t *testing.T) {
	t.Parallel()
	const probe = `"timeoutSeconds":1,"periodSeconds":10,"successThreshold":1,"failureThreshold":3`
	for sent, stored := range map[string]string{
		`{"image":"a","ports":[{"containerPort":1}]}`:          `{"image":"a","ports":[{"containerPort":1,"protocol":"TCP"}]}`,
		`{"image":"a","livenessProbe":{"httpGet":{"port":1}}}`: `{"image":"a","livenessProbe":{` + probe + `,"httpGet":{"port":1,"path":"/","scheme":"HTTP"}}}`,
		`{"image":"a","readinessProbe":{"grpc":{"port":1}}}`:   `{"image":"a","readinessProbe":{` + probe + `,"grpc":{"port":1,"service":""}}}`,
		`{"image":"a","startupProbe":{"exec":{}}}`:             `{"image":"a","startupProbe":{` + probe + `,"exec":{}}}`,
		`{"image":"a"}`: `{"image":"a","terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File","imagePullPolicy":"Always","resources":{}}`,
		`{"image":"a","env":[{"name":"A","valueFrom":{"fieldRef":{"fieldPath":"x"}}}]}`:           `{"image":"a","env":[{"name":"A","valueFrom":{"fieldRef":{"fieldPath":"x","apiVersion":"v1"}}}]}`,
		`{"image":"a","env":[{"name":"A","valueFrom":{"fileKeyRef":{"key":"x"}}}]}`:               `{"image":"a","env":[{"name":"A","valueFrom":{"fileKeyRef":{"key":"x","optional":false}}}]}`,
		`{"image":"a","resources":{"limits":{"cpu":"1","memory":"1"},"requests":{"cpu":"500m"}}}`: `{"image":"a","resources":{"limits":{"cpu":"1","memory":"1"},"requests":{"cpu":"500m","memory":"1"}}}`,
		`{"name":"v","configMap":{"name":"c"}}`:                                                   `{"name":"v","configMap":{"name":"c","defaultMode":420}}`,
		`{"name":"v","downwardAPI":{"items":[]}}`:                                                 `{"name":"v","downwardAPI":{"items":[],"defaultMode":420}}`,
		`{"name":"v","projected":{"sources":[{"serviceAccountToken":{"path":"t"}}]}}`:             `{"name":"v","projected":{"defaultMode":420,"sources":[{"serviceAccountToken":{"path":"t","expirationSeconds":3600}}]}}`,
		`{"name":"v","hostPath":{"path":"/"}}`:                                                    `{"name":"v","hostPath":{"path":"/","type":""}}`,
		`{"name":"v","iscsi":{"lun":0}}`:                                                          `{"name":"v","iscsi":{"lun":0,"iscsiInterface":"default"}}`,
		`{"name":"v","rbd":{"image":"i"}}`:                                                        `{"name":"v","rbd":{"image":"i","pool":"rbd","user":"admin","keyring":"/etc/ceph/keyring"}}`,
		`{"name":"v","azureDisk":{"diskName":"d"}}`:                                               `{"name":"v","azureDisk":{"diskName":"d","cachingMode":"ReadWrite","fsType":"ext4","readOnly":false,"kind":"Shared"}}`,
		`{"name":"v","scaleIO":{"system":"s"}}`:                                                   `{"name":"v","scaleIO":{"system":"s","storageMode":"ThinProvisioned","fsType":"xfs"}}`,
		`{"name":"v","image":{}}`:                                                                 `{"name":"v","image":{"pullPolicy":"IfNotPresent"}}`,
	} {
		if !subset.Equal([]byte(stored), json.RawMessage(sent)) || !subset.Equal([]byte(sent), json.RawMessage(stored)) {
			t.Errorf("%s is not %s", stored, sent)
		}
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
		"quantities":                            {`{"resources":{"limits":{"cpu":"1"}}}`, `{"resources":{"limits":{"cpu":"1000m"}}}`, true},
		"other quantities":                      {`{"resources":{"limits":{"cpu":"1"}}}`, `{"resources":{"limits":{"cpu":"100m"}}}`, false},
		"quantity and text":                     {`{"resources":{"limits":{"cpu":"0"}}}`, `{"resources":{"limits":{"cpu":"zero"}}}`, false},
		"text and quantity":                     {`{"resources":{"limits":{"cpu":"zero"}}}`, `{"resources":{"limits":{"cpu":"0"}}}`, false},
		"the last of several variables counts":  {`{"env":[{"name":"A","value":"1"},{"name":"A","value":"2"}]}`, `{"env":[{"name":"A","value":"1"}]}`, false},
		"null is nothing":                       {`{"grpc":{"port":1,"service":""}}`, `{"grpc":{"port":1,"service":null}}`, true},
		"devices are found by their path":       {`{"volumeDevices":[{"name":"v","devicePath":"/b"},{"name":"v","devicePath":"/a"}]}`, `{"volumeDevices":[{"name":"v","devicePath":"/a"}]}`, true},
		"ports are found by their number":       {`{"ports":[{"containerPort":1},{"containerPort":2}]}`, `{"ports":[{"containerPort":2}]}`, true},
		"items are found by their key":          {`{"items":[{"key":"a","path":"x"},{"key":"b","path":"x"}]}`, `{"items":[{"key":"b","path":"x"}]}`, true},
		"files are found by their path":         {`{"items":[{"path":"a"},{"path":"b"}]}`, `{"items":[{"path":"b"}]}`, true},
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
