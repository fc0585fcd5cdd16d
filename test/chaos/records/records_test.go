package records_test

import (
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
	if err := j.Fault(entry.Fault{Kind: records.KindKill, Detail: "at once", Begin: time.Now().Add(-time.Second), Impedes: true}); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(name)
	if err != nil || j.Close() != nil {
		t.Fatal(err)
	}
	faults, err := entry.ParseFaults(name, strings.NewReader(string(content)))
	if err != nil || len(faults) != 1 || faults[0].Kind != records.KindKill || !faults[0].Impedes || faults[0].End.Sub(faults[0].Begin) < time.Second {
		t.Errorf("faults %+v, %v", faults, err)
	}
}
