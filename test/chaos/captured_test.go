package chaos_test

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/refit-project/refit/test/chaos"
	"github.com/refit-project/refit/test/chaos/history/verdict"
)

// The records of real runs: of TestSmallDose, and of SidecarSets under more faults.
const (
	smallDose   = "captured"
	sidecarSets = "captured-sidecarsets"
)

// captured unpacks the records of a real run.
func captured(t *testing.T, run string) (folder string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", run, "*.gz"))
	if err != nil || len(files) == 0 {
		t.Fatalf("captured records: %v, %v", files, err)
	}
	folder = t.TempDir()
	for _, file := range files {
		packed, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		reader, err := gzip.NewReader(packed)
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		if err := packed.Close(); err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(file), ".gz")
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

func judged(t *testing.T, folder string) verdict.Report {
	t.Helper()
	report, err := chaos.Judge(folder)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func TestCapturedRunHasNoViolations(t *testing.T) {
	t.Parallel()
	report := judged(t, captured(t, smallDose))
	if !report.OK() {
		t.Errorf("violations %v, refused %v", report.Violations, report.Refused)
	}
	got := report.Totals
	if got.Requests != 171 || got.Succeeded != 152 || got.Stops != 132 || got.Pulls != 194 || got.Cancelled != 27 || got.Denied != 68 ||
		got.RolledOut != 4 || got.Updated != 41 || got.Refused != 91 {
		t.Errorf("totals %+v, want the totals of the run", got)
	}
}

func TestCapturedRolloutsOfSidecarSetsHaveNoViolations(t *testing.T) {
	t.Parallel()
	report := judged(t, captured(t, sidecarSets))
	if !report.OK() || report.Totals.SidecarUpdates != 47 {
		t.Errorf("violations %v, refused %v, totals %+v", report.Violations, report.Refused, report.Totals)
	}
}

// edit changes the lines of a record that match; it fails where none does.
func edit(t *testing.T, name string, change func(line map[string]any) bool) {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	changed := 0
	for line := range bytes.Lines(content) {
		var decoded map[string]any
		if err := json.Unmarshal(line, &decoded); err == nil && change(decoded) {
			changed++
			if line, err = json.Marshal(decoded); err != nil {
				t.Fatal(err)
			}
			line = append(line, '\n')
		}
		out.Write(line)
	}
	if changed == 0 {
		t.Fatalf("nothing to change in %s", name)
	}
	if err := os.WriteFile(name, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Bugs planted into what a real run has left behind are found under the name of the promise they break.
func TestPlantedInACapturedRun(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		want  string
		run   string // smallDose if empty
		file  string
		plant func(line map[string]any) bool
	}{
		"a SidecarSet that may update one pod at a time": {want: "I15", run: sidecarSets, file: "audit.jsonl", plant: func(line map[string]any) bool {
			object, _ := line["responseObject"].(map[string]any)
			if object["kind"] != "SidecarSet" {
				return false
			}
			object["spec"].(map[string]any)["updateStrategy"].(map[string]any)["maxUnavailable"] = 1
			return true
		}},
		"applications that end with their sidecars": {want: "I15", run: sidecarSets, file: "audit.jsonl", plant: func(line map[string]any) bool {
			object, _ := line["responseObject"].(map[string]any)
			status, _ := object["status"].(map[string]any)
			statuses, _ := status["containerStatuses"].([]any)
			ids := map[any]any{}
			for _, s := range statuses {
				ids[s.(map[string]any)["name"]] = s.(map[string]any)["containerID"]
			}
			for _, s := range statuses {
				if s := s.(map[string]any); s["name"] == "app" && ids["side"] != nil {
					s["containerID"] = ids["side"]
				}
			}
			return ids["side"] != nil
		}},
		"pods that lose the word on their injection": {want: "I15", run: sidecarSets, file: "audit.jsonl", plant: func(line map[string]any) bool {
			object, _ := line["responseObject"].(map[string]any)
			meta, _ := object["metadata"].(map[string]any)
			if object["kind"] != "Pod" || line["verb"] != "patch" {
				return false
			}
			delete(meta, "annotations")
			return true
		}},
		"jobs deleted a minute before their pulls": {want: "I9", file: "audit.jsonl", plant: func(line map[string]any) bool {
			ref, _ := line["objectRef"].(map[string]any)
			if ref["resource"] != "imagepulljobs" || line["verb"] != "delete" {
				return false
			}
			for _, key := range []string{"requestReceivedTimestamp", "stageTimestamp"} {
				at, err := time.Parse(time.RFC3339Nano, line[key].(string))
				if err != nil {
					t.Fatal(err)
				}
				line[key] = at.Add(-time.Minute).Format(time.RFC3339Nano)
			}
			return true
		}},
		"stops of containers that nobody knows": {want: "I2", file: "calls-node-1.jsonl", plant: func(line map[string]any) bool {
			if line["method"] != "StopContainer" {
				return false
			}
			line["container_id"] = strings.Repeat("f", 64)
			return true
		}},
		"a daemon that writes as if it were on another node": {want: "I11", file: "audit.jsonl", plant: func(line map[string]any) bool {
			who, _ := line["user"].(map[string]any)
			extra, _ := who["extra"].(map[string]any)
			ref, _ := line["objectRef"].(map[string]any)
			if extra == nil || ref["resource"] != "nodeimages" {
				return false
			}
			extra["authentication.kubernetes.io/node-name"] = []string{"node-7"}
			return true
		}},
		"a reader that sees half a file": {want: "I10", file: "updates-all.jsonl", plant: func(line map[string]any) bool {
			if line["event"] != "file" || line["container"] != "app" {
				return false
			}
			line["event"] = "torn"
			return true
		}},
		"updates that were not asked for": {want: "I10", file: "updates-all.jsonl", plant: func(line map[string]any) bool {
			text, _ := line["text"].(string)
			if line["event"] != "update" || !strings.HasSuffix(text, "-good") {
				return false
			}
			line["text"] = strings.TrimSuffix(text, "good") + "digest"
			return true
		}},
		"rollouts that may restart one pod at a time": {want: "I13", file: "audit.jsonl", plant: func(line map[string]any) bool {
			object, _ := line["responseObject"].(map[string]any)
			if object["kind"] != "RestartRollout" {
				return false
			}
			spec, _ := object["spec"].(map[string]any)
			changed := spec["maxUnavailable"] != 1.0
			spec["maxUnavailable"] = 1
			return changed
		}},
		"jobs that call more nodes done than there are": {want: "I14", file: "audit.jsonl", plant: func(line map[string]any) bool {
			object, _ := line["responseObject"].(map[string]any)
			status, _ := object["status"].(map[string]any)
			if object["kind"] != "ImagePullJob" || status["succeeded"] != 2.0 {
				return false
			}
			status["succeeded"] = 3
			return true
		}},
		"stops with another grace period": {want: "grace", file: "calls-node-2.jsonl", plant: func(line map[string]any) bool {
			if line["method"] != "StopContainer" {
				return false
			}
			line["timeout"] = 77
			return true
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := captured(t, cmp.Or(test.run, smallDose))
			edit(t, filepath.Join(folder, test.file), test.plant)
			report := judged(t, folder)
			if !slices.ContainsFunc(report.Violations, func(v verdict.Violation) bool { return v.Invariant == test.want }) {
				t.Errorf("%d violations, none of %s", len(report.Violations), test.want)
			}
		})
	}
}
