package refit_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestJudgeNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	table := func() []row {
		return []row{
			{name: "fakes", tools: true, rooms: []room{{path: "fake", imports: "low"}}},
			{name: "modes", rooms: []room{{path: "mode", imports: "mode/a mode/b"}}},
			{name: "parts", rooms: []room{{path: "mode/a", imports: "low"}, {path: "mode/b"}}},
			{name: "words", rooms: []room{{path: "low"}}},
		}
	}
	imports := func() map[string][]string {
		return map[string][]string{"fake": {"low"}, "mode": {"mode/a", "mode/b"}, "mode/a": {"low"}, "mode/b": nil, "low": nil, "low/part": {"low"}}
	}
	for name, test := range map[string]struct {
		plant func(table []row, imports map[string][]string)
		want  []string
	}{
		"nothing": {plant: func([]row, map[string][]string) {}},
		"an import that is not allowed": {
			plant: func(_ []row, imports map[string][]string) { imports["mode/b"] = []string{"low/part"} },
			want:  []string{"mode/b imports low/part: mode/b may import only "},
		},
		"a sibling imported": {
			plant: func(table []row, imports map[string][]string) {
				table[2].rooms[1].imports, imports["mode/b"] = "mode/a", []string{"mode/a"}
			},
			want: []string{"mode/b -> mode/a does not point down"},
		},
		"a fake in the product": {
			plant: func(table []row, imports map[string][]string) {
				table[0], table[3] = table[3], table[0]
				table[1].rooms[0].imports += " fake"
				imports["mode"] = append(imports["mode"], "fake")
				table[2].rooms[0].imports, imports["mode/a"], table[3].rooms[0].imports, imports["fake"] = "", nil, "", nil
			},
			want: []string{"mode -> fake: only tests and tools may import it"},
		},
		"an arrow that is not used": {
			plant: func(table []row, _ map[string][]string) { table[2].rooms[1].imports = "low" },
			want:  []string{"mode/b -> low is allowed and not used: take it out of architecture_test.go"},
		},
		"an arrow to come is used": {
			plant: func(table []row, imports map[string][]string) {
				table[2].rooms[1].imports, table[2].rooms[1].toCome, table[2].rooms[1].why = "low", "low", "later"
				imports["mode/b"] = []string{"low"}
			},
			want: []string{"mode/b -> low is used: it is no longer to come"},
		},
		"to come without a reason": {
			plant: func(table []row, _ map[string][]string) { table[2].rooms[1].toCome = "low" },
			want:  []string{"mode/b: what is to come needs a why, and a why something to come"},
		},
		"a part of a mode without a room": {
			plant: func(_ []row, imports map[string][]string) { imports["mode/c"] = []string{"low"} },
			want: []string{
				"mode/c is a part of mode and needs a room of its own in architecture_test.go",
				"mode/c imports low: mode may import only mode/a mode/b",
			},
		},
		"a folder without a room": {
			plant: func(_ []row, imports map[string][]string) { imports["attic"] = nil },
			want:  []string{"attic is in no room of architecture_test.go"},
		},
		"a room without a folder": {
			plant: func(_ []row, imports map[string][]string) { delete(imports, "fake") },
			want: []string{
				"fake -> low is allowed and not used: take it out of architecture_test.go",
				"fake: there is no such folder",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			table, imports := table(), imports()
			test.plant(table, imports)
			if diff := cmp.Diff(test.want, judge(table, []string{"mode"}, imports)); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
		})
	}
}
