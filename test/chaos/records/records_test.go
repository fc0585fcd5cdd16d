package records_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/refit-project/refit/test/chaos/history/entry"
	"github.com/refit-project/refit/test/chaos/records"
)

func TestTailGivesWholeLines(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "log")
	file, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	write := func(text string) {
		if _, err := file.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	write("old\nfirst\nsec")
	log, err := records.OpenTail(name, int64(len("old\n")))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	next := func() string {
		line, err := log.Next()
		if err != nil {
			t.Fatal(err)
		}
		return string(line)
	}
	got := []string{next(), next()}
	write("ond\n")
	got = append(got, next(), next())
	if want := []string{"first\n", "", "second\n", ""}; !slices.Equal(got, want) {
		t.Errorf("lines %q, want %q", got, want)
	}
}

func TestJournalIsWhatTheJudgeReads(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "faults.jsonl")
	j, err := records.OpenJournal(name, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Fault(entry.Fault{Kind: entry.KindDaemonKill, Detail: "at once", Begin: time.Now().Add(-time.Second), Impedes: true}); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(name)
	if err != nil || j.Close() != nil {
		t.Fatal(err)
	}
	faults, err := entry.ParseFaults(name, strings.NewReader(string(content)))
	if err != nil || len(faults) != 1 || faults[0].Kind != entry.KindDaemonKill || !faults[0].Impedes || faults[0].End.Sub(faults[0].Begin) < time.Second {
		t.Errorf("faults %+v, %v", faults, err)
	}
}

func TestLogsOfUpdatesAndSamplesAreRecordsOfTheirOwn(t *testing.T) {
	t.Parallel()
	logs, folder := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{
		filepath.Join(logs, "uid-1.jsonl"):     `{"time":"2026-11-22T10:00:00Z","event":"start","pod_uid":"uid-1"}`,
		filepath.Join(logs, "uid-2.updates"):   `{"time":"2026-11-22T10:00:00Z","event":"file","pod_uid":"uid-2","text":"v1"}`,
		filepath.Join(folder, records.Samples): `{"time":"2026-11-22T10:00:00Z","program":"refit-daemon","pid":7,"anon":1,"files":2,"threads":3}`,
	} {
		if err := os.WriteFile(name, []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(records.KeepSignals(folder, logs), records.KeepUpdates(folder, logs, ".updates")); err != nil {
		t.Fatal(err)
	}
	found, err := records.Read(folder)
	if err != nil {
		t.Fatal(err)
	}
	if len(found.Signals) != 1 || found.Signals[0].PodUID != "uid-1" || len(found.Updates) != 1 || found.Updates[0].Reason != "v1" ||
		len(found.Samples) != 1 || found.Samples[0].Threads != 3 {
		t.Errorf("signals %+v, updates %+v, samples %+v", found.Signals, found.Updates, found.Samples)
	}
}
