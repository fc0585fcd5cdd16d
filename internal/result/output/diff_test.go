package output_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refit-project/refit/internal/result/output"
)

func TestDiff(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	field := func(want any, path ...string) output.Edit { return output.Edit{Path: path, Want: want} }
	away := func(ours []any, path ...string) output.Edit { return output.Edit{Path: path, Ours: ours} }
	condition := func(status, message string) output.Edit {
		return output.Edit{Condition: &output.WantedCondition{Type: "Idle", Status: status, Message: message, At: now.Add(-time.Second)}}
	}
	reasoned := func(reason string) output.Edit {
		edit := condition("True", "idle")
		edit.Condition.Reason = reason
		return edit
	}
	gone := func(reason string) output.Edit {
		return output.Edit{Condition: &output.WantedCondition{Type: "Idle", Reason: reason}}
	}
	const probedSinceOne = `{"status":{"conditions":[{"type":"Idle","status":"True","reason":"Probed","message":"idle","lastTransitionTime":"2026-11-21T01:00:00Z"}]}}`
	const idleSinceOne = `{"status":{"conditions":[{"type":"Ready","status":"True"},
		{"type":"Idle","status":"True","message":"idle","lastTransitionTime":"2026-11-21T01:00:00Z"}]}}`
	tests := map[string]struct {
		object  output.Object
		content string
		edits   []output.Edit
		want    []string // "<subresource> <kind> <body>"
		fault   string
	}{
		"nothing wanted": {content: `{}`},
		"value is there": {content: `{"spec":{"opsState":"Kill"}}`, edits: []output.Edit{field("Kill", "spec", "opsState")}},
		"value differs": {content: `{"spec":{"opsState":"None"}}`, edits: []output.Edit{field("Kill", "spec", "opsState")},
			want: []string{` merge-patch {"spec":{"opsState":"Kill"}}`}},
		"member and its parents are missing": {content: `{}`, edits: []output.Edit{field("1", "metadata", "labels", "a/b")},
			want: []string{` merge-patch {"metadata":{"labels":{"a/b":"1"}}}`}},
		"two members, one patch": {content: `{}`, edits: []output.Edit{field("1", "metadata", "labels", "a"), field("2", "metadata", "annotations", "b")},
			want: []string{` merge-patch {"metadata":{"annotations":{"b":"2"},"labels":{"a":"1"}}}`}},
		"numbers are compared as JSON": {content: `{"spec":{"n":3}}`, edits: []output.Edit{field(3, "spec", "n")}},
		"false is a value":             {content: `{}`, edits: []output.Edit{field(false, "spec", "on")}, want: []string{` merge-patch {"spec":{"on":false}}`}},
		"null is no value": {content: `{"spec":{"n":null}}`, edits: []output.Edit{field(map[string]int{"x": 1}, "spec", "n")},
			want: []string{` merge-patch {"spec":{"n":{"x":1}}}`}},
		"ours goes":          {content: `{"spec":{"n":"a"}}`, edits: []output.Edit{away([]any{"b", "a"}, "spec", "n")}, want: []string{` merge-patch {"spec":{"n":null}}`}},
		"another's stays":    {content: `{"spec":{"n":"c"}}`, edits: []output.Edit{away([]any{"b", "a"}, "spec", "n")}},
		"what is away stays": {content: `{}`, edits: []output.Edit{away([]any{"a"}, "spec", "n")}},
		"element of an array": {content: `{"metadata":{"resourceVersion":"9"},"spec":{"ports":[{"name":"a"},{"name":"b"}]}}`,
			edits: []output.Edit{field("c", "spec", "ports", "1", "name")},
			want:  []string{` json-patch [{"op":"test","path":"/metadata/resourceVersion","value":"9"},{"op":"replace","path":"/spec/ports/1/name","value":"c"}]`}},
		"new member deep in an element": {content: `{"spec":{"ports":[{}]}}`, edits: []output.Edit{field(false, "spec", "ports", "0", "a", "b/c")},
			want: []string{` json-patch [{"op":"add","path":"/spec/ports/0/a","value":{"b/c":false}}]`}},
		"no such element": {content: `{"spec":{"ports":[{}]}}`, edits: []output.Edit{field("x", "spec", "ports", "1"), field("y", "spec", "b")},
			want: []string{` merge-patch {"spec":{"b":"y"}}`}, fault: "/spec/ports/1"},
		"no element before the first": {content: `{"spec":{"ports":[{}]}}`, edits: []output.Edit{field("x", "spec", "ports", "-1", "name")}, fault: "/spec/ports/-1"},
		"an element has no name":      {content: `{"spec":{"ports":[{}]}}`, edits: []output.Edit{field("x", "spec", "ports", "first", "name")}, fault: "/spec/ports/first"},
		"the version changes with what is merged": {content: `{"metadata":{"resourceVersion":"9"},"spec":{"ports":["a"]}}`,
			edits: []output.Edit{field("b", "spec", "ports", "0"), field("y", "spec", "b")},
			want:  []string{` merge-patch {"spec":{"b":"y"}}`, ` json-patch [{"op":"replace","path":"/spec/ports/0","value":"b"}]`}},
		"parent is null": {content: `{"spec":null}`, edits: []output.Edit{field("x", "spec", "a")}, want: []string{` merge-patch {"spec":{"a":"x"}}`}},
		"our element goes": {content: `{"metadata":{"resourceVersion":"9"},"spec":{"ports":["a"]}}`, edits: []output.Edit{away([]any{"a"}, "spec", "ports", "0")},
			want: []string{` json-patch [{"op":"test","path":"/metadata/resourceVersion","value":"9"},{"op":"remove","path":"/spec/ports/0"}]`}},
		"parent is no object": {content: `{"spec":"text"}`, edits: []output.Edit{field("x", "spec", "a")}, fault: "/spec is neither"},
		"status is another write": {content: `{}`, edits: []output.Edit{{Path: []string{"status", "a"}, Want: "x", Subresource: "status"}, field("y", "spec", "b")},
			want: []string{` merge-patch {"spec":{"b":"y"}}`, `status merge-patch {"status":{"a":"x"}}`}},
		"a pod's members all go through its status": {object: pod, content: `{}`, edits: []output.Edit{field("1", "metadata", "labels", "a"), condition("True", "idle")},
			want: []string{`status strategic-merge-patch {"metadata":{"labels":{"a":"1"},"uid":"u-1"},"status":{"conditions":[{"lastProbeTime":"2026-11-21T11:59:59Z","lastTransitionTime":"2026-11-21T12:00:00Z","message":"idle","status":"True","type":"Idle"}]}}`}},
		"two conditions are one patch": {object: pod, content: `{}`, edits: []output.Edit{condition("True", "idle"), {Condition: &output.WantedCondition{Type: "Full", Status: "False"}}},
			want: []string{`status strategic-merge-patch {"metadata":{"uid":"u-1"},"status":{"conditions":[{"lastProbeTime":"2026-11-21T11:59:59Z","lastTransitionTime":"2026-11-21T12:00:00Z","message":"idle","status":"True","type":"Idle"},{"lastTransitionTime":"2026-11-21T12:00:00Z","message":"","status":"False","type":"Full"}]}}`}},
		"condition is there": {object: pod, content: idleSinceOne, edits: []output.Edit{condition("True", "idle")}},
		"condition with another message keeps its time": {object: pod, content: idleSinceOne, edits: []output.Edit{condition("True", "busy")},
			want: []string{`status strategic-merge-patch {"metadata":{"uid":"u-1"},"status":{"conditions":[{"lastProbeTime":"2026-11-21T11:59:59Z","lastTransitionTime":"2026-11-21T01:00:00Z","message":"busy","status":"True","type":"Idle"}]}}`}},
		"condition gets a reason and keeps its time": {object: pod, content: idleSinceOne, edits: []output.Edit{reasoned("Probed")},
			want: []string{`status strategic-merge-patch {"metadata":{"uid":"u-1"},"status":{"conditions":[{"lastProbeTime":"2026-11-21T11:59:59Z","lastTransitionTime":"2026-11-21T01:00:00Z","message":"idle","reason":"Probed","status":"True","type":"Idle"}]}}`}},
		"condition with its reason is there": {object: pod, content: probedSinceOne, edits: []output.Edit{reasoned("Probed")}},
		"condition loses the reason of another": {object: pod, content: probedSinceOne, edits: []output.Edit{condition("True", "idle")},
			want: []string{`status strategic-merge-patch {"metadata":{"uid":"u-1"},"status":{"conditions":[{"lastProbeTime":"2026-11-21T11:59:59Z","lastTransitionTime":"2026-11-21T01:00:00Z","message":"idle","reason":null,"status":"True","type":"Idle"}]}}`}},
		"condition goes": {object: pod, content: probedSinceOne, edits: []output.Edit{gone("Probed")},
			want: []string{`status strategic-merge-patch {"metadata":{"uid":"u-1"},"status":{"conditions":[{"$patch":"delete","type":"Idle"}]}}`}},
		"condition of another stays": {object: pod, content: idleSinceOne, edits: []output.Edit{gone("Probed")}},
		"condition of nobody":        {object: pod, content: `{"status":{"conditions":["Idle"]}}`, edits: []output.Edit{gone("")}},
		"condition that has gone":    {object: pod, content: `{}`, edits: []output.Edit{gone("Probed")}},
		"condition flips": {object: pod, content: idleSinceOne, edits: []output.Edit{condition("False", "gone")},
			want: []string{`status strategic-merge-patch {"metadata":{"uid":"u-1"},"status":{"conditions":[{"lastProbeTime":"2026-11-21T11:59:59Z","lastTransitionTime":"2026-11-21T12:00:00Z","message":"gone","status":"False","type":"Idle"}]}}`}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var content map[string]any
			if err := json.Unmarshal([]byte(tt.content), &content); err != nil {
				t.Fatal(err)
			}
			object := tt.object
			if object.Resource == "" {
				object = gameserver
			}
			patches, err := output.Diff(object, content, tt.edits, now)
			if (err != nil) != (tt.fault != "") || err != nil && !strings.Contains(err.Error(), tt.fault) {
				t.Errorf("error %v, want %q", err, tt.fault)
			}
			var got []string
			for _, p := range patches {
				kind := strings.TrimSuffix(strings.TrimPrefix(string(p.Type), "application/"), "+json")
				got = append(got, p.Subresource+" "+kind+" "+string(p.Body))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("patches (-want +got):\n%s", diff)
			}
		})
	}
}
