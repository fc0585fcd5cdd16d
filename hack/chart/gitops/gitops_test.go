// Package gitops_test runs what tells Argo CD and Flux how objects of Refit are, with objects as they were on a cluster.
package gitops_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	lua "github.com/yuin/gopher-lua"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

const root = "../../.."

// healthOf are Argo CD's words by how the names of the files with the objects begin.
var healthOf = map[string]string{"healthy": "Healthy", "progressing": "Progressing", "degraded": "Degraded", "suspended": "Suspended"}

// objects are the objects of docs/testdata/gitops by the names of their files.
func objects(t *testing.T) map[string]*unstructured.Unstructured {
	t.Helper()
	files, err := filepath.Glob(root + "/docs/testdata/gitops/*.yaml")
	if err != nil || len(files) < 15 {
		t.Fatalf("%d objects: %v", len(files), err)
	}
	all := map[string]*unstructured.Unstructured{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		object := &unstructured.Unstructured{}
		// Numbers as the API machinery has them: kstatus wants integers.
		data, err := yaml.YAMLToJSON(content)
		if err == nil {
			err = utiljson.Unmarshal(data, &object.Object)
		}
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all[strings.TrimSuffix(filepath.Base(file), ".yaml")] = object
	}
	return all
}

// value is what Argo CD makes of an object for Lua.
func value(state *lua.LState, from any) lua.LValue {
	switch v := from.(type) {
	case bool:
		return lua.LBool(v)
	case float64:
		return lua.LNumber(v)
	case int64:
		return lua.LNumber(v)
	case string:
		return lua.LString(v)
	case []any:
		list := state.CreateTable(len(v), 0)
		for _, item := range v {
			list.Append(value(state, item))
		}
		return list
	case map[string]any:
		table := state.CreateTable(0, len(v))
		for key, item := range v {
			table.RawSetString(key, value(state, item))
		}
		return table
	}
	return lua.LNil
}

// health runs a check as Argo CD does: in a virtual machine with few libraries, with the object as obj.
func health(t *testing.T, check string, object *unstructured.Unstructured) (is, message string) {
	t.Helper()
	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer state.Close()
	for name, open := range map[string]lua.LGFunction{lua.LoadLibName: lua.OpenPackage, lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable, lua.StringLibName: lua.OpenString} {
		if err := state.CallByParam(lua.P{Fn: state.NewFunction(open), Protect: true}, lua.LString(name)); err != nil {
			t.Fatal(err)
		}
	}
	state.SetContext(t.Context())
	state.SetGlobal("obj", value(state, object.Object))
	if err := state.DoString(check); err != nil {
		t.Fatal(err)
	}
	table, ok := state.Get(-1).(*lua.LTable)
	if !ok {
		t.Fatalf("the check returns %s", state.Get(-1).Type())
	}
	return table.RawGetString("status").String(), table.RawGetString("message").String()
}

func TestArgoCDShowsHowObjectsAre(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile(root + "/deploy/argocd/health-checks.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var config corev1.ConfigMap
	if err := yaml.UnmarshalStrict(content, &config); err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for name, object := range objects(t) {
		kind := object.GroupVersionKind()
		key := "resource.customizations.health." + kind.Group + "_" + kind.Kind
		used[key] = true
		if config.Data[key] == "" {
			t.Errorf("%s: there is no check %s", name, key)
			continue
		}
		prefix, _, _ := strings.Cut(name, "-")
		is, message := health(t, config.Data[key], object)
		if is != healthOf[prefix] || message == "" || message == "nil" {
			t.Errorf("%s: got %s with message %q", name, is, message)
		}
		want := "Progressing"
		if kind.Kind == "RestartSchedule" { // it waits for nothing before its first time
			want = map[bool]string{false: "Healthy", true: "Suspended"}[prefix == "suspended"]
		}
		object.Object["status"] = nil
		if is, _ := health(t, config.Data[key], object); is != want {
			t.Errorf("%s before it has a status: %s, want %s", name, is, want)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(config.Data)) {
		if !used[key] {
			t.Errorf("%s has no object to be tried with", key)
		}
	}
}

// Without the expressions of docs/how-to/gitops.md, Flux waits for what kstatus knows: observedGeneration and Ready. An
// object that is carried out once counts as current before it has ended, so the page has expressions for those.
func TestFluxKnowsWithoutExpressionsObjectsThatStay(t *testing.T) {
	t.Parallel()
	for name, object := range objects(t) {
		result, err := status.Compute(object)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if object.GetKind() == "RestartSchedule" && result.Status != status.CurrentStatus {
			t.Errorf("%s: %s: %s: Flux would wait for it", name, result.Status, result.Message)
		}
		prefix, _, _ := strings.Cut(name, "-")
		want := map[string]status.Status{"healthy": status.CurrentStatus}[prefix]
		switch {
		case object.GetKind() == "InPlaceUpdatePolicy" && prefix == "degraded":
			want = status.FailedStatus
		case object.GetKind() != "PodProbeMarker" && object.GetKind() != "InPlaceUpdatePolicy":
			continue
		case want == "":
			want = status.InProgressStatus
		}
		if result.Status != want {
			t.Errorf("%s: %s: %s, want %s", name, result.Status, result.Message, want)
		}
	}
}
