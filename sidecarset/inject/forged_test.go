package inject_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/sidecarset/annotation"
	"github.com/refit-project/refit/sidecarset/inject"
)

const logSet = `
metadata: {name: log}
spec:
  containers: [{name: log, image: "log:1", env: [{name: TARGET, value: ours}], volumeMounts: [{name: spool, mountPath: /spool}], resources: {limits: {cpu: 100m}}}]
  volumes: [{name: spool, emptyDir: {}}]`

// brought is a pod that says that it has been injected, with the container that it brings.
func brought(container string) string {
	return `
metadata: {name: web, annotations: {kruise.io/sidecarset-hash: '{"log":"x"}', kruise.io/sidecarset-injected-list: log}}
spec:
  containers: [{name: app, image: "app:1"}, {` + container + `}]
  volumes: [{name: spool, emptyDir: {}}, {name: own, emptyDir: {}}]`
}

const asInjected = `name: log, image: "log:1", env: [{name: TARGET, value: ours}, {name: IS_INJECTED, value: "true"}], volumeMounts: [{name: spool, mountPath: /spool}], resources: {limits: {cpu: 100m}}`

// forgeries are changes of a container that change what runs in it.
var forgeries = map[string]string{
	"command":                     asInjected + `, command: [sleep, infinity]`,
	"args":                        asInjected + `, args: [--upload=elsewhere]`,
	"image":                       strings.Replace(asInjected, "log:1", "evil:1", 1),
	"preloaded library":           strings.Replace(asInjected, "env: [", "env: [{name: LD_PRELOAD, value: /spool/x.so}, ", 1),
	"variable twice":              strings.Replace(asInjected, `"true"}`, `"true"}, {name: TARGET, value: elsewhere}`, 1),
	"other value":                 strings.Replace(asInjected, "value: ours", "value: theirs", 1),
	"value from a field":          strings.Replace(asInjected, "value: ours", "value: ours, valueFrom: {fieldRef: {fieldPath: metadata.name}}", 1),
	"envFrom":                     asInjected + `, envFrom: [{configMapRef: {name: x}}]`,
	"mount over /etc":             strings.Replace(asInjected, "mountPath: /spool}", "mountPath: /spool}, {name: own, mountPath: /etc}", 1),
	"mount as the token":          strings.Replace(asInjected, "mountPath: /spool}", "mountPath: /spool}, {name: own, mountPath: /var/run/secrets/kubernetes.io/serviceaccount, readOnly: true}", 1),
	"token elsewhere":             strings.Replace(asInjected, "mountPath: /spool}", "mountPath: /spool}, {name: kube-api-access-a, mountPath: /usr, readOnly: true}", 1),
	"other mount":                 strings.Replace(asInjected, "name: spool, mountPath", "name: own, mountPath", 1),
	"subPath":                     strings.Replace(asInjected, "mountPath: /spool}", "mountPath: /spool, subPath: x}", 1),
	"devices":                     asInjected + `, volumeDevices: [{name: own, devicePath: /dev/x}]`,
	"postStart":                   asInjected + `, lifecycle: {postStart: {exec: {command: [sh]}}}`,
	"preStop":                     asInjected + `, lifecycle: {preStop: {exec: {command: [sh]}}}`,
	"livenessProbe":               asInjected + `, livenessProbe: {exec: {command: ["false"]}}`,
	"readinessProbe":              asInjected + `, readinessProbe: {exec: {command: ["false"]}}`,
	"startupProbe":                asInjected + `, startupProbe: {exec: {command: ["false"]}}`,
	"securityContext":             asInjected + `, securityContext: {runAsUser: 0}`,
	"restartPolicy":               asInjected + `, restartPolicy: Never`,
	"ports":                       asInjected + `, ports: [{containerPort: 80, hostPort: 80}]`,
	"workingDir":                  asInjected + `, workingDir: /spool`,
	"stdin":                       asInjected + `, stdin: true`,
	"tty":                         asInjected + `, tty: true`,
	"termination path":            asInjected + `, terminationMessagePath: /etc/passwd`,
	"termination policy":          asInjected + `, terminationMessagePolicy: FallbackToLogsOnError`,
	"pull policy":                 asInjected + `, imagePullPolicy: Never`,
	"less CPU":                    strings.Replace(asInjected, "cpu: 100m", "cpu: 1m", 1),
	"another limit":               strings.Replace(asInjected, "cpu: 100m", "cpu: 100m, memory: 1Mi", 1),
	"claims":                      strings.Replace(asInjected, "limits: {cpu: 100m}", "limits: {cpu: 100m}, claims: [{name: x}]", 1),
	"resizePolicy":                asInjected + `, resizePolicy: [{resourceName: cpu, restartPolicy: RestartContainer}]`,
	"a field of newer Kubernetes": asInjected + `, futureField: {x: y}`,
	"an inner one":                asInjected + `, securityContext: {futureField: true}`,
}

// A tenant who sends the "already injected" container himself gets the one of the SidecarSet.
func TestAContainerThatAPodBringsDoesNotReplaceTheSidecar(t *testing.T) {
	t.Parallel()
	clean := injectedInto(t, request(t, asJSON(t, brought(asInjected))))
	if len(clean) != 2 || clean[1] == nil || clean[1].(map[string]any)["name"] != "log" {
		t.Fatalf("containers %v", clean)
	}
	for name, container := range forgeries {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := injectedInto(t, request(t, asJSON(t, brought(container))))
			want := map[string]any{}
			for key, value := range clean[1].(map[string]any) {
				want[key] = value
			}
			if len(got) != 2 || !reflect.DeepEqual(got[1], any(want)) {
				t.Errorf("the sidecar is %v, want %v", got, want)
			}
		})
	}
}

// What other webhooks have changed in one request stays when the webhook is invoked again: of what they have added to a sidecar the
// client has sent nothing.
func TestWhatOtherWebhooksAddedStaysWhenTheWebhookIsInvokedAgain(t *testing.T) {
	t.Parallel()
	const added = `name: log, image: "log:1", env: [{name: OTHER, value: x}, {name: TARGET, value: ours}, {name: IS_INJECTED, value: "true"}], ` +
		`volumeMounts: [{name: spool, mountPath: /spool}, {name: own, mountPath: /identity}], resources: {limits: {cpu: "0.1", memory: 1Gi}}`
	pod := asJSON(t, brought(added))
	for name, tc := range map[string]struct {
		sent string // by the client
		kept bool
	}{
		"the client has sent the pod without it": {"metadata: {name: web}\nspec: {containers: [{name: app}]}", true},
		"the client has sent the container":      {brought(asInjected), false},
		"there are no managed fields":            {"", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			arrived := pod
			if tc.sent != "" {
				arrived = withManagedFieldsOf(t, pod, request(t, asJSON(t, tc.sent)))
			}
			sidecar := fmt.Sprint(injectedInto(t, arrived)[1])
			if strings.Contains(sidecar, "OTHER") != tc.kept || strings.Contains(sidecar, "/identity") != tc.kept {
				t.Errorf("what another webhook has added is kept: %t, want %t: %s", !tc.kept, tc.kept, sidecar)
			}
		})
	}
}

// A pod that is created from the manifest of an injected one: what it brings is compared in the first call, what other webhooks
// add afterwards stays.
func TestWhatOtherWebhooksAddToAPodFromAManifestStays(t *testing.T) {
	t.Parallel()
	plan := planOf(t, input{SidecarSets: []v1beta1.SidecarSet{parsedSet(t)}})
	pod := request(t, asJSON(t, brought(forgeries["preloaded library"])))
	for range 2 { // the manifest of a manifest, too
		first, err := inject.Apply(pod, plan, now)
		if err != nil {
			t.Fatal(err)
		}
		pod = apply(t, pod, first.Patch)
		pod = []byte(strings.Replace(string(pod), `{"name":"TARGET"`, `{"name":"OTHER","value":"x"},{"name":"TARGET"`, 1))
		second, err := inject.Apply(pod, plan, now)
		if err != nil || len(second.Patch) > 0 || !strings.Contains(string(pod), "OTHER") || strings.Contains(string(pod), "LD_PRELOAD") {
			t.Fatalf("a second call writes %v, %v into %s", second.Patch, err, pod)
		}
		pod = request(t, withoutManagedFields(t, pod))
	}
}

// With a list of sidecars in its annotations a pod cannot have a container removed that somebody else has injected.
func TestAForgedListOfSidecarsRemovesNothingOfOthers(t *testing.T) {
	t.Parallel()
	forged := `metadata: {name: web, annotations: {kruise.io/sidecarset-hash: '{"log":{"hash":"x","sidecarList":["proxy"]}}'}}` + "\nspec: {containers: [{name: app, image: 'app:1'}]}"
	byPolicy := strings.Replace(forged, "containers: [", `containers: [{name: proxy, image: 'proxy:1', env: [{name: IS_INJECTED, value: "true"}]}, `, 1)
	pod := withManagedFieldsOf(t, asJSON(t, byPolicy), request(t, asJSON(t, forged)))
	if got := injectedInto(t, pod); len(got) != 3 {
		t.Errorf("containers %v", got)
	}
}

// Where the API has no quantities, those that take minutes to compare, or that crash who compares them, are text like other text.
func TestAHugeNumberInAPodTakesNoTime(t *testing.T) {
	t.Parallel()
	begun := time.Now()
	for _, number := range []string{"1e300000000", "1e2147483647", "1e-300000000", "1E300000000", strings.Repeat("9", 1<<20)} {
		for _, container := range []string{
			strings.Replace(asInjected, "value: ours", `value: "`+number+`"`, 1), asInjected + `, args: ["` + number + `"]`,
		} {
			if got := fmt.Sprint(injectedInto(t, request(t, asJSON(t, brought(container))))); strings.Contains(got, number) {
				t.Errorf("%.20s... stays", number)
			}
		}
		plan := planOf(t, input{SidecarSets: []v1beta1.SidecarSet{parsedFrom(t, `{metadata: {name: go}, spec: {patchContainers: [{env: [{name: GOMAXPROCS, value: "2"}]}]}}`)}})
		_, err := inject.Apply(asJSON(t, `{metadata: {name: bomb}, spec: {containers: [{name: app, env: [{name: GOMAXPROCS, value: "`+number+`"}]}]}}`), plan, now)
		if err == nil {
			t.Errorf("%.20s... is taken for 2", number)
		}
	}
	if took := time.Since(begun); took > 30*time.Second {
		t.Errorf("it took %s", took)
	}
}

func injectedInto(t *testing.T, pod []byte) []any {
	t.Helper()
	result, err := inject.Apply(pod, planOf(t, input{SidecarSets: []v1beta1.SidecarSet{parsedSet(t)}}), now)
	if err != nil {
		t.Fatal(err)
	}
	pod = apply(t, pod, result.Patch)
	var after struct{ Spec struct{ Containers []any } }
	var typed corev1.Pod
	if json.Unmarshal(pod, &after) != nil || json.Unmarshal(pod, &typed) != nil || annotation.Of(&typed, "log") == nil {
		t.Fatalf("pod %s", pod)
	}
	list := after.Spec.Containers
	for i, c := range list { // the app may stand at any place
		if c.(map[string]any)["name"] == "log" {
			list = append(append(list[:i:i], list[i+1:]...), c)
			break
		}
	}
	return list
}

func parsedSet(t *testing.T) v1beta1.SidecarSet {
	t.Helper()
	return parsedFrom(t, logSet)
}

func parsedFrom(t *testing.T, text string) (set v1beta1.SidecarSet) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(text), &set); err != nil {
		t.Fatal(err)
	}
	return set
}

func asJSON(t *testing.T, text string) []byte {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// withManagedFieldsOf is a pod as it arrives if its client has sent another one.
func withManagedFieldsOf(t *testing.T, pod, sent []byte) []byte {
	t.Helper()
	var object, other map[string]any
	if json.Unmarshal(pod, &object) != nil || json.Unmarshal(sent, &other) != nil {
		t.Fatal("not JSON")
	}
	object["metadata"].(map[string]any)["managedFields"] = other["metadata"].(map[string]any)["managedFields"]
	return encoded(t, object)
}
