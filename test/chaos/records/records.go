// Package records writes down what a run of chaos did and saw, and reads it again for the judgement. The folder of a
// run is all that the judgement knows of it.
package records

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/refit-project/refit/test/chaos/history/entry"
	"github.com/refit-project/refit/test/chaos/history/model"
)

// Samples is the name of the record of what our programs use, Watched of what a client has seen of workloads and their Services.
const (
	Samples = "samples.jsonl"
	Watched = "watched.jsonl"
)

// KeepAudit copies the audit log from an offset on, as it is gone with the cluster.
func KeepAudit(folder, log string, offset int64) error {
	return copyFrom(filepath.Join(folder, "audit.jsonl"), log, offset)
}

// KeepSignals copies the logs that applications wrote into the folder from.
func KeepSignals(folder, from string) error {
	logs, err := filepath.Glob(filepath.Join(from, "*.jsonl"))
	errs := []error{err}
	for _, log := range logs {
		errs = append(errs, copyFrom(filepath.Join(folder, "signals-"+filepath.Base(log)), log, 0))
	}
	return errors.Join(errs...)
}

// KeepUpdates copies the logs of updates, whose names end as that, from the folder from.
func KeepUpdates(folder, from, end string) error {
	logs, err := filepath.Glob(filepath.Join(from, "*"+end))
	errs := []error{err}
	for _, log := range logs {
		errs = append(errs, copyFrom(filepath.Join(folder, "updates-"+strings.TrimSuffix(filepath.Base(log), end)+".jsonl"), log, 0))
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

// Read reads what a run left in its folder.
func Read(folder string) (model.Records, error) {
	records := model.Records{}
	err := eachFile(folder, "audit.jsonl", func(name string, in io.Reader) (err error) {
		records.Writes, records.Broken, err = entry.ParseAudit(name, in)
		return err
	})
	err = errors.Join(err, eachFile(folder, "calls-*.jsonl", func(name string, in io.Reader) error {
		calls, err := entry.ParseCalls(name, in)
		records.Calls = append(records.Calls, calls...)
		return err
	}))
	err = errors.Join(err, eachFile(folder, "signals-*.jsonl", func(name string, in io.Reader) error {
		signals, err := entry.ParseSignals(name, in)
		records.Signals = append(records.Signals, signals...)
		return err
	}))
	err = errors.Join(err, eachFile(folder, "updates-*.jsonl", func(name string, in io.Reader) error {
		updates, err := entry.ParseSignals(name, in)
		records.Updates = append(records.Updates, updates...)
		return err
	}))
	err = errors.Join(err, eachFile(folder, Samples, func(name string, in io.Reader) (err error) {
		records.Samples, err = entry.ParseSamples(name, in)
		return err
	}))
	err = errors.Join(err, eachFile(folder, Watched, func(name string, in io.Reader) (err error) {
		records.Watched, err = entry.ParseWatched(name, in)
		return err
	}))
	err = errors.Join(err, eachFile(folder, "faults.jsonl", func(name string, in io.Reader) (err error) {
		records.Faults, err = entry.ParseFaults(name, in)
		return err
	}))
	err = errors.Join(err, eachFile(folder, "turns.jsonl", func(name string, in io.Reader) (err error) {
		records.Turns, err = entry.ParseTurns(name, in)
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
