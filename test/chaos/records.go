package chaos

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/refit-project/refit/test/chaos/history"
)

// keepLogs copies what will be gone with the cluster to the other records.
func (r *run) keepLogs() error {
	errs := []error{copyFrom(r.record("audit.jsonl"), r.cluster.auditLog(), r.auditFrom)}
	for _, node := range r.cluster.nodes {
		logs, err := filepath.Glob(r.cluster.run(node, logFolder, "*.jsonl"))
		errs = append(errs, err)
		for _, log := range logs {
			errs = append(errs, copyFrom(r.record("signals-"+filepath.Base(log)), log, 0))
		}
	}
	return errors.Join(errs...)
}

func copyFrom(to, from string, offset int64) error {
	in, err := os.Open(from)
	if err != nil {
		return fmt.Errorf("keep record: %w", err)
	}
	defer func() { _ = in.Close() }()
	if _, err := in.Seek(offset, io.SeekStart); err != nil {
		return fmt.Errorf("keep record: %w", err)
	}
	out, err := os.Create(to)
	if err != nil {
		return fmt.Errorf("keep record: %w", err)
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// ReadRecords reads what a run left in its folder.
func ReadRecords(folder string) (history.Records, error) {
	records := history.Records{}
	err := eachFile(folder, "audit.jsonl", func(name string, in io.Reader) (err error) {
		records.Writes, records.Broken, err = history.ParseAudit(name, in)
		return err
	})
	err = errors.Join(err, eachFile(folder, "calls-*.jsonl", func(name string, in io.Reader) error {
		calls, err := history.ParseCalls(name, in)
		records.Calls = append(records.Calls, calls...)
		return err
	}))
	err = errors.Join(err, eachFile(folder, "signals-*.jsonl", func(name string, in io.Reader) error {
		signals, err := history.ParseSignals(name, in)
		records.Signals = append(records.Signals, signals...)
		return err
	}))
	err = errors.Join(err, eachFile(folder, "faults.jsonl", func(name string, in io.Reader) (err error) {
		records.Faults, err = history.ParseFaults(name, in)
		return err
	}))
	err = errors.Join(err, eachFile(folder, "turns.jsonl", func(name string, in io.Reader) (err error) {
		records.Turns, err = history.ParseTurns(name, in)
		return err
	}))
	for _, write := range records.Writes {
		if write.Done.After(records.End) {
			records.End = write.Done
		}
	}
	return records, err
}

func eachFile(folder, pattern string, read func(name string, in io.Reader) error) error {
	files, err := filepath.Glob(filepath.Join(folder, pattern))
	if err != nil {
		return err
	}
	for _, file := range files {
		in, err := os.Open(file)
		if err != nil {
			return fmt.Errorf("read records: %w", err)
		}
		err = read(filepath.Base(file), in)
		if err := errors.Join(err, in.Close()); err != nil {
			return err
		}
	}
	return nil
}

// Print writes the verdict.
func Print(out io.Writer, report history.Report) {
	t := report.Totals
	fmt.Fprintf(out, "\nrequests    %d: %d succeeded, %d failed, %d deleted\n", t.Requests, t.Succeeded, t.Failed, t.Deleted)
	fmt.Fprintf(out, "stops       %d containers for %d containers of requests; %d repeated calls; %d ends seen by the applications\n",
		t.Stops, t.Orders, t.Repeated, t.Ends)
	fmt.Fprintf(out, "turns       %d of probed applications, %d followed before the next, the slowest in %s, not counting faults\n",
		t.Turns, t.Followed, t.Slowest.Round(time.Millisecond))
	fmt.Fprintf(out, "trespasses  %d refused\n", t.Denied)
	for _, kind := range slices.Sorted(maps.Keys(t.Faults)) {
		fmt.Fprintf(out, "fault       %-20s %d\n", kind, t.Faults[kind])
	}
	for _, violation := range report.Violations {
		fmt.Fprintf(out, "\n%s\n", violation)
	}
	found := map[string]int{}
	for _, violation := range report.Violations {
		found[violation.Invariant]++
	}
	fmt.Fprintln(out)
	for _, invariant := range []string{"I1", "I2", "I3", "I4", "I5", "I6", "I8", "I11", "I12", "crash", "grace", "verdict", "volume"} {
		verdict := "no violation found"
		if n := found[invariant]; n > 0 {
			verdict = fmt.Sprintf("VIOLATED %d times", n)
		}
		fmt.Fprintf(out, "%-6s %s\n", invariant, verdict)
	}
	for _, why := range report.Refused {
		fmt.Fprintf(out, "REFUSED: the run proves nothing: %s\n", why)
	}
}
