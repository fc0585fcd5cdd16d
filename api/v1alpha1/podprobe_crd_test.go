package v1alpha1_test

import (
	"os"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"
)

// readCRD decodes a shipped manifest the way the API server does, unknown fields refused.
func readCRD(t *testing.T, plural string) *apiextensions.CustomResourceDefinition {
	t.Helper()
	data, err := os.ReadFile("../../deploy/crd/apps.kruise.io_" + plural + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	install.Install(scheme)
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDecoder(apiextensions.SchemeGroupVersion)
	object, _, err := decoder.Decode(data, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return object.(*apiextensions.CustomResourceDefinition)
}

func TestProbeCRDsAreAcceptedByTheAPIServer(t *testing.T) {
	t.Parallel()
	for _, plural := range []string{"podprobemarkers", "nodepodprobes"} {
		crd := readCRD(t, plural)
		crd.Status.StoredVersions = []string{"v1alpha1"}
		for _, err := range crdvalidation.ValidateCustomResourceDefinition(t.Context(), crd) {
			t.Error(err) // the cost budget of validation rules is checked here too
		}
	}
}

// validate applies what the API server applies to a custom resource: schema, list types, validation rules.
func validate(t *testing.T, plural string, object, old map[string]any) field.ErrorList {
	t.Helper()
	v, err := apiextensions.GetSchemaForVersion(readCRD(t, plural), "v1alpha1")
	if err != nil {
		t.Fatal(err)
	}
	structural, err := structuralschema.NewStructural(v.OpenAPIV3Schema)
	if err != nil {
		t.Fatal(err)
	}
	schema, _, err := validation.NewSchemaValidator(v.OpenAPIV3Schema)
	if err != nil {
		t.Fatal(err)
	}
	errs := validation.ValidateCustomResource(nil, object, schema)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, structural, object)...)
	if len(errs) > 0 {
		return errs
	}
	var before any
	if old != nil {
		before = old
	}
	rules := cel.NewValidator(structural, true, celconfig.PerCallLimit)
	errs, _ = rules.Validate(t.Context(), nil, structural, object, before, celconfig.RuntimeCELCostBudget)
	return errs
}

const validMarker = `
apiVersion: apps.kruise.io/v1alpha1
kind: PodProbeMarker
metadata: {name: game}
spec:
  selector: {matchLabels: {app: game}}
  probes:
  - name: Ready
    containerName: main
    probe:
      exec: {command: [cat, /tmp/idle]}
      initialDelaySeconds: 1
      periodSeconds: 1
      timeoutSeconds: 1
    podConditionType: game.kruise.io/idle
    markerPolicy:
    - state: Succeeded
      labels: {game.kruise.io/idle: "true"}
      annotations: {controller.kubernetes.io/pod-deletion-cost: "-10"}
    - state: Failed
      annotations: {controller.kubernetes.io/pod-deletion-cost: "10"}
  - {name: http, containerName: main, podConditionType: http, probe: {httpGet: {port: web, path: /healthz}}}
  - {name: https, containerName: main, podConditionType: https, probe: {httpGet: {port: 8443, scheme: HTTPS}}}
  - {name: tcp, containerName: main, podConditionType: tcp, probe: {tcpSocket: {port: 80}}}
  - {name: grpc, containerName: main, podConditionType: grpc, probe: {grpc: {port: 9000, service: live}}}
`

func decode(t *testing.T, text string) map[string]any {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatalf("%v in:\n%s", err, text)
	}
	var object map[string]any
	if err := utiljson.Unmarshal(data, &object); err != nil {
		t.Fatal(err)
	}
	return object
}

// change replaces a part of a valid object.
func change(t *testing.T, text, old, to string) string {
	t.Helper()
	if !strings.Contains(text, old) {
		t.Fatalf("no %q in the valid object", old)
	}
	return strings.Replace(text, old, to, 1)
}

func refused(t *testing.T, errs field.ErrorList, want ...string) {
	t.Helper()
	got := errs.ToAggregate()
	if len(want) == 0 && got != nil {
		t.Errorf("refused: %v", got)
	}
	for _, words := range want {
		if got == nil || !strings.Contains(got.Error(), words) {
			t.Errorf("got %v, want an error with %q", got, words)
		}
	}
}

func TestPodProbeMarkerRules(t *testing.T) {
	t.Parallel()
	const idle, exec = "podConditionType: game.kruise.io/idle", "exec: {command: [cat, /tmp/idle]}"
	const probe0 = "spec.probes[0].probe."
	_, probes, _ := strings.Cut(validMarker, "probes:")
	many := strings.Repeat("  - {name: NAME, containerName: a, podConditionType: NAME, probe: {grpc: {port: 1}}}\n", 100)
	for i := range 100 {
		many = strings.Replace(many, "NAME", "p"+string(rune('a'+i/10))+string(rune('a'+i%10)), 2)
	}
	for name, tc := range map[string]struct {
		old, to string
		update  bool // the valid object is the one before
		want    []string
	}{
		"valid":                     {},
		"valid update":              {update: true},
		"probe changed":             {old: "periodSeconds: 1", to: "periodSeconds: 5", update: true},
		"no selector":               {old: "selector: {matchLabels: {app: game}}", to: "paused: true", want: []string{"spec.selector"}},
		"empty selector":            {old: "{matchLabels: {app: game}}", to: "{}", want: []string{"spec.selector", "must not be empty"}},
		"empty labels":              {old: "{app: game}", to: "{}", want: []string{"spec.selector", "must not be empty"}},
		"unknown operator":          {old: "{matchLabels: {app: game}}", to: "{matchExpressions: [{key: a, operator: Has}]}", want: []string{"spec.selector.matchExpressions", "one of In, NotIn, Exists and DoesNotExist"}},
		"operator without values":   {old: "{matchLabels: {app: game}}", to: "{matchExpressions: [{key: a, operator: In}]}", want: []string{"spec.selector.matchExpressions", "need values"}},
		"operator with values":      {old: "{matchLabels: {app: game}}", to: "{matchExpressions: [{key: a, operator: Exists, values: [b]}]}", want: []string{"spec.selector.matchExpressions", "take no values"}},
		"selector changed":          {old: "{app: game}", to: "{app: other}", update: true, want: []string{"spec.selector", "cannot be changed"}},
		"no probes":                 {old: "probes:" + probes, to: "probes: []", want: []string{"spec.probes"}},
		"101 probes":                {old: "  - {name: tcp,", to: many + "  - {name: tcp,", want: []string{"spec.probes", "at most 100"}},
		"probe without name":        {old: "name: Ready", to: `name: ""`, want: []string{"spec.probes[0].name"}},
		"probe name with #":         {old: "name: Ready", to: `name: "a#b"`, want: []string{"spec.probes[0].name", "must not contain '#'"}},
		"probe name twice":          {old: "name: tcp", to: "name: http", want: []string{"spec.probes[3]", "Duplicate value"}},
		"no container":              {old: "containerName: main", to: "", want: []string{"spec.probes[0].containerName", "Required"}},
		"container that is none":    {old: "containerName: main", to: "containerName: Main_1", want: []string{"spec.probes[0].containerName", "name of a container"}},
		"no handler":                {old: exec, to: "", want: []string{"spec.probes[0].probe", "exactly one of exec, httpGet, tcpSocket and grpc"}},
		"two handlers":              {old: exec, to: exec + "\n      tcpSocket: {port: 80}", want: []string{"spec.probes[0].probe", "exactly one of"}},
		"exec without command":      {old: exec, to: "exec: {}", want: []string{probe0 + "exec.command", "must be given"}},
		"http host":                 {old: exec, to: "httpGet: {host: 169.254.169.254, port: 80}", want: []string{probe0 + "httpGet.host", "host is not allowed"}},
		"tcp host":                  {old: exec, to: "tcpSocket: {host: db.prod, port: 80}", want: []string{probe0 + "tcpSocket.host", "host is not allowed"}},
		"http port 0":               {old: exec, to: "httpGet: {port: 0}", want: []string{probe0 + "httpGet.port", "between 1 and 65535"}},
		"http port 65536":           {old: exec, to: "httpGet: {port: 65536}", want: []string{probe0 + "httpGet.port", "between 1 and 65535"}},
		"http port name empty":      {old: exec, to: `httpGet: {port: ""}`, want: []string{probe0 + "httpGet.port", "name of a port"}},
		"http port name too long":   {old: exec, to: "httpGet: {port: abcdefghijklmnop}", want: []string{probe0 + "httpGet.port", "name of a port"}},
		"tcp port 0":                {old: exec, to: "tcpSocket: {port: 0}", want: []string{probe0 + "tcpSocket.port", "between 1 and 65535"}},
		"grpc port 0":               {old: exec, to: "grpc: {port: 0}", want: []string{probe0 + "grpc.port", "between 1 and 65535"}},
		"unknown scheme":            {old: exec, to: "httpGet: {port: 80, scheme: FTP}", want: []string{probe0 + "httpGet.scheme", "HTTP, which is the default, or HTTPS"}},
		"path too long":             {old: exec, to: "httpGet: {port: 80, path: " + strings.Repeat("a", 2049) + "}", want: []string{probe0 + "httpGet.path", "2048"}},
		"33 headers":                {old: exec, to: "httpGet: {port: 80, httpHeaders: [" + strings.Repeat("{name: a, value: b},", 33) + "]}", want: []string{probe0 + "httpGet.httpHeaders", "32"}},
		"negative delay":            {old: "initialDelaySeconds: 1", to: "initialDelaySeconds: -1", want: []string{probe0 + "initialDelaySeconds", "between 0 and 86400"}},
		"endless delay":             {old: "initialDelaySeconds: 1", to: "initialDelaySeconds: 86401", want: []string{probe0 + "initialDelaySeconds", "between 0 and 86400"}},
		"negative period":           {old: "periodSeconds: 1", to: "periodSeconds: -1", want: []string{probe0 + "periodSeconds", "between 0 and 86400"}},
		"negative timeout":          {old: "timeoutSeconds: 1", to: "timeoutSeconds: -1", want: []string{probe0 + "timeoutSeconds", "between 0 and 3600"}},
		"endless timeout":           {old: "timeoutSeconds: 1", to: "timeoutSeconds: 3601", want: []string{probe0 + "timeoutSeconds", "between 0 and 3600"}},
		"negative success count":    {old: "timeoutSeconds: 1", to: "successThreshold: -1", want: []string{probe0 + "successThreshold", "between 0 and 1000"}},
		"negative failure count":    {old: "timeoutSeconds: 1", to: "failureThreshold: -1", want: []string{probe0 + "failureThreshold", "between 0 and 1000"}},
		"result goes nowhere":       {old: "podConditionType: http,", to: "", want: []string{"spec.probes[1]", "podConditionType or markerPolicy must be given"}},
		"condition twice":           {old: "podConditionType: http,", to: "podConditionType: tcp,", want: []string{"spec.probes", "each podConditionType may be given only once"}},
		"condition that is no key":  {old: idle, to: "podConditionType: a b", want: []string{"spec.probes[0].podConditionType", "look like a label's key"}},
		"condition Ready":           {old: idle, to: "podConditionType: Ready", want: []string{"spec.probes[0].podConditionType", "written by kubelet or a controller"}},
		"condition ContainersReady": {old: idle, to: "podConditionType: ContainersReady", want: []string{"written by kubelet or a controller"}},
		"condition KruisePodReady":  {old: idle, to: "podConditionType: KruisePodReady", want: []string{"written by kubelet or a controller"}},
		"condition of in-place":     {old: idle, to: "podConditionType: InPlaceUpdateReady", want: []string{"written by kubelet or a controller"}},
		"condition of disruption":   {old: idle, to: "podConditionType: DisruptionTarget", want: []string{"written by kubelet or a controller"}},
		"unknown state":             {old: "state: Failed", to: "state: Unknown", want: []string{"spec.probes[0].markerPolicy[1].state", `"Succeeded", "Failed"`}},
		"state twice":               {old: "state: Failed", to: "state: Succeeded", want: []string{"spec.probes[0].markerPolicy[1]", "Duplicate value"}},
		"policy without marks":      {old: `annotations: {controller.kubernetes.io/pod-deletion-cost: "10"}`, to: "labels: {}", want: []string{"spec.probes[0].markerPolicy[1]", "labels or annotations must be given"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var old map[string]any
			if tc.update {
				old = decode(t, validMarker)
			}
			text := validMarker
			if tc.old != "" {
				text = change(t, text, tc.old, tc.to)
			}
			refused(t, validate(t, "podprobemarkers", decode(t, text), old), tc.want...)
		})
	}
}

const validNode = `
apiVersion: apps.kruise.io/v1alpha1
kind: NodePodProbe
metadata: {name: node-1}
spec:
  podProbes:
  - name: web-0
    namespace: shop
    uid: 5b7a3c7e-0f0f-4d3a-9a52-3d1f0c1c8b1e
    IP: ""
    probes:
    - {name: game#idle, containerName: main, probe: {exec: {command: [cat, /tmp/idle]}}}
status:
  podProbeStatuses:
  - {name: web-0, namespace: shop, uid: u, probeStates: [{name: game#idle, state: Succeeded, lastProbeTime: "2026-11-21T12:00:00Z", message: ok}]}
`

func TestNodePodProbeRules(t *testing.T) {
	t.Parallel()
	const exec, first = "exec: {command: [cat, /tmp/idle]}", "spec.podProbes[0].probes[0].probe"
	for name, tc := range map[string]struct {
		old, to string
		want    []string
	}{
		"valid":      {},
		"no IP":      {old: `IP: ""`, to: "", want: []string{"spec.podProbes[0].IP", "Required"}},
		"http host":  {old: exec, to: "httpGet: {host: 169.254.169.254, port: 80}", want: []string{first + ".httpGet.host", "host is not allowed"}},
		"tcp host":   {old: exec, to: "tcpSocket: {host: db, port: 80}", want: []string{first + ".tcpSocket.host", "host is not allowed"}},
		"port 0":     {old: exec, to: "tcpSocket: {port: 0}", want: []string{first + ".tcpSocket.port", "between 1 and 65535"}},
		"no handler": {old: exec, to: "", want: []string{first, "exactly one of"}},
		"10,000 probes": {
			old: "    probes:\n", to: "    probes:\n" + strings.Repeat("    - {name: a#b, containerName: c, probe: {grpc: {port: 1}}}\n", 10000),
			want: []string{"spec.podProbes[0].probes", "at most 256"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := validNode
			if tc.old != "" {
				text = change(t, text, tc.old, tc.to)
			}
			refused(t, validate(t, "nodepodprobes", decode(t, text), nil), tc.want...)
		})
	}
}
