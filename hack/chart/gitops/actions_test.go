package gitops_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	lua "github.com/yuin/gopher-lua"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// actions are the actions of a kind, as Argo CD reads them.
type actions struct {
	MergeBuiltin bool   `json:"mergeBuiltinActions"`
	Discovery    string `json:"discovery.lua"`
	Definitions  []struct {
		Name string `json:"name"`
		Code string `json:"action.lua"`
	} `json:"definitions"`
}

func actionsOf(t *testing.T, key string) actions {
	t.Helper()
	content, err := os.ReadFile(root + "/deploy/argocd/actions.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var config corev1.ConfigMap
	if err := yaml.UnmarshalStrict(content, &config); err != nil {
		t.Fatal(err)
	}
	var of actions
	if err := yaml.UnmarshalStrict([]byte(config.Data["resource.customizations.actions."+key]), &of); err != nil || of.Discovery == "" {
		t.Fatalf("%s: %v", key, err)
	}
	return of
}

// run runs code as Argo CD does, in a virtual machine with few libraries, of which os has date and time only.
func run(t *testing.T, code string, object map[string]any) any {
	t.Helper()
	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer state.Close()
	for name, open := range map[string]lua.LGFunction{lua.LoadLibName: lua.OpenPackage, lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable} {
		if err := state.CallByParam(lua.P{Fn: state.NewFunction(open), Protect: true}, lua.LString(name)); err != nil {
			t.Fatal(err)
		}
	}
	state.PreloadModule("os", func(s *lua.LState) int {
		s.Push(s.SetFuncs(s.NewTable(), map[string]lua.LGFunction{"date": func(s *lua.LState) int {
			s.Push(lua.LString(time.Date(2026, 11, 27, 9, 8, 7, 0, time.UTC).Format("20060102-150405")))
			return 1
		}}))
		return 1
	})
	state.SetContext(t.Context())
	state.SetGlobal("obj", value(state, object))
	if err := state.DoString(code); err != nil {
		t.Fatal(err)
	}
	return plain(state.Get(-1))
}

// plain is a value of Lua as JSON has it.
func plain(from lua.LValue) any {
	table, ok := from.(*lua.LTable)
	switch {
	case !ok && from.Type() == lua.LTNumber:
		return float64(from.(lua.LNumber))
	case !ok && from.Type() == lua.LTBool:
		return bool(from.(lua.LBool))
	case !ok:
		return from.String()
	case table.Len() > 0:
		var list []any
		table.ForEach(func(_, v lua.LValue) { list = append(list, plain(v)) })
		return list
	}
	all := map[string]any{}
	table.ForEach(func(k, v lua.LValue) { all[k.String()] = plain(v) })
	return all
}

// enabled are the names of the actions that a user may choose for an object.
func (a actions) enabled(t *testing.T, object *unstructured.Unstructured) []string {
	t.Helper()
	var names []string
	for name, about := range run(t, a.Discovery, object.Object).(map[string]any) {
		if fields, ok := about.(map[string]any); !ok || fields["disabled"] != true {
			names = append(names, name)
		}
		if !slices.ContainsFunc(a.Definitions, func(d struct {
			Name string `json:"name"`
			Code string `json:"action.lua"`
		}) bool {
			return d.Name == name
		}) {
			t.Errorf("action %s has no definition", name)
		}
	}
	slices.Sort(names)
	return names
}

func (a actions) do(t *testing.T, name string, object *unstructured.Unstructured) any {
	t.Helper()
	for _, d := range a.Definitions {
		if d.Name == name {
			return run(t, d.Code, object.Object)
		}
	}
	t.Fatalf("there is no action %s", name)
	return nil
}

func TestActionsOfArgoCDChangeWhatTheCommandsChange(t *testing.T) {
	t.Parallel()
	all := objects(t)
	for name, tc := range map[string]struct {
		object  string
		enabled []string
		action  string
		want    string // of spec, as JSON
	}{
		"pause a rollout":      {"progressing-restartrollout", []string{"abort", "pause"}, "pause", `{"paused":true}`},
		"resume a rollout":     {"suspended-restartrollout", []string{"abort", "resume"}, "resume", `{"paused":false}`},
		"abort a rollout":      {"progressing-restartrollout", []string{"abort", "pause"}, "abort", `{"paused":false,"partition":"100%","activeDeadlineSeconds":3}`},
		"a rollout at its end": {"healthy-restartrollout", nil, "", ""},
		"pause an update":      {"progressing-inplaceupdatepolicy", []string{"pause"}, "pause", `{"paused":true}`},
		"promote a step":       {"suspended-inplaceupdatepolicy", []string{"pause", "promote", "promote-full"}, "promote", `{"promoted":{"revision":"2qlfda9ujjes5","step":0}}`},
		"promote all steps":    {"suspended-inplaceupdatepolicy", []string{"pause", "promote", "promote-full"}, "promote-full", `{"promoted":{"revision":"2qlfda9ujjes5","step":0}}`},
		"suspend a schedule":   {"healthy-restartschedule", []string{"suspend", "trigger"}, "suspend", `{"suspend":true}`},
		"resume a schedule":    {"suspended-restartschedule", []string{"resume", "trigger"}, "resume", `{"suspend":false}`},
		"pause a SidecarSet":   {"progressing-sidecarset", []string{"pause"}, "pause", `{"updateStrategy":{"paused":true}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			object := all[tc.object]
			if object == nil {
				t.Fatalf("there is no object %s", tc.object)
			}
			kind := object.GroupVersionKind()
			of := actionsOf(t, kind.Group+"_"+kind.Kind)
			if diff := cmp.Diff(tc.enabled, of.enabled(t, object)); diff != "" {
				t.Errorf("actions (-want +got):\n%s", diff)
			}
			if tc.action == "" {
				return
			}
			changed := of.do(t, tc.action, object.DeepCopy()).(map[string]any)
			var want map[string]any
			if err := json.Unmarshal([]byte(tc.want), &want); err != nil {
				t.Fatal(err)
			}
			spec := changed["spec"].(map[string]any)
			for field, value := range want {
				got := spec[field]
				if inner, ok := value.(map[string]any); ok && field == "updateStrategy" {
					got, value = got.(map[string]any)["paused"], inner["paused"]
				}
				if diff := cmp.Diff(value, got); diff != "" {
					t.Errorf("spec.%s (-want +got):\n%s", field, diff)
				}
			}
		})
	}
}

// What an action creates has only fields that RestartRollouts have, by their CRD.
func TestActionsOfArgoCDCreateRollouts(t *testing.T) {
	t.Parallel()
	workload := func(kind string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apps/v1", "kind": kind, "metadata": map[string]any{"name": "web", "namespace": "shop"},
			"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "app"}, map[string]any{"name": "log"}}}}},
		}}
	}
	target := func(kind string) map[string]any {
		return map[string]any{"apiVersion": "apps/v1", "kind": kind, "name": "web"}
	}
	containers := []any{map[string]any{"name": "app"}, map[string]any{"name": "log"}}
	for _, kind := range []string{"Deployment", "StatefulSet", "DaemonSet"} {
		of := actionsOf(t, "apps_"+kind)
		if !of.MergeBuiltin {
			t.Errorf("%s: the actions of Argo CD are lost", kind)
		}
		got := of.do(t, "restart-in-place", workload(kind))
		want := []any{map[string]any{"operation": "create", "resource": map[string]any{
			"apiVersion": "refit.dev/v1alpha1", "kind": "RestartRollout",
			"metadata": map[string]any{"name": "web-20261127-090807", "namespace": "shop", "annotations": map[string]any{"refit.dev/reason": "Argo CD, action restart-in-place"}},
			"spec":     map[string]any{"targetRef": target(kind), "containers": containers, "ttlSecondsAfterFinished": 86400.0},
		}}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", kind, diff)
		}
	}
	schedule := objects(t)["healthy-restartschedule"]
	if err := unstructured.SetNestedField(schedule.Object, "shop", "spec", "rolloutTemplate", "metadata", "labels", "team"); err != nil {
		t.Fatal(err)
	}
	got := actionsOf(t, "refit.dev_RestartSchedule").do(t, "trigger", schedule).([]any)[0].(map[string]any)
	created := got["resource"].(map[string]any)
	spec := created["spec"].(map[string]any)
	if name := created["metadata"].(map[string]any)["name"].(string); got["operation"] != "create" || !strings.HasPrefix(name, schedule.GetName()+"-2026") || created["metadata"].(map[string]any)["labels"].(map[string]any)["team"] != "shop" || spec["containers"] == nil || spec["ttlSecondsAfterFinished"] == nil {
		t.Errorf("%v", got)
	}
}
