package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/refit-project/refit/test/chaos/cluster"
	"github.com/refit-project/refit/test/chaos/history/entry"
	"github.com/refit-project/refit/test/chaos/records"
)

const sampleEvery = 5 * time.Second

// programs whose memory, files and threads are recorded.
var programs = []string{cluster.DaemonName, cluster.ManagerName, "refit-sidecar"}

// sample writes down what our programs use, until the context ends.
func (r *run) sample(ctx context.Context) error {
	file, err := os.Create(r.record(records.Samples))
	if err != nil {
		return fmt.Errorf("record samples: %w", err)
	}
	defer func() { _ = file.Close() }()
	for cluster.Pause(ctx, sampleEvery) == nil {
		processes, err := filepath.Glob("/proc/[0-9]*/comm")
		if err != nil {
			return err
		}
		for _, process := range processes {
			comm, err := os.ReadFile(process)
			program := string(bytes.TrimSpace(comm))
			if err != nil || !slices.Contains(programs, program) {
				continue
			}
			sample, err := sampleOf(filepath.Dir(process), program)
			if err != nil {
				continue // it has ended
			}
			line, err := json.Marshal(sample)
			if err != nil {
				return err
			}
			if _, err := file.Write(append(line, '\n')); err != nil {
				return fmt.Errorf("record samples: %w", err)
			}
		}
	}
	return nil
}

// sampleOf reads what the process in a folder of /proc uses.
func sampleOf(folder, program string) (entry.Sample, error) {
	pid, err := strconv.Atoi(filepath.Base(folder))
	status, err2 := os.ReadFile(filepath.Join(folder, "status"))
	files, err3 := os.ReadDir(filepath.Join(folder, "fd"))
	if err := errors.Join(err, err2, err3); err != nil {
		return entry.Sample{}, err
	}
	sample := entry.Sample{At: time.Now(), Program: program, PID: pid, Files: len(files)}
	for line := range bytes.Lines(status) {
		fields := bytes.Fields(line)
		if len(fields) < 2 {
			continue
		}
		number, _ := strconv.ParseInt(string(fields[1]), 10, 64)
		switch string(fields[0]) {
		case "RssAnon:":
			sample.Anon = number << 10
		case "Threads:":
			sample.Threads = int(number)
		}
	}
	return sample, nil
}
