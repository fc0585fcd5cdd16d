// Package process starts the cluster's programs in their namespaces, remembers which process is which
// on disk, and stops, pauses and resumes them. It knows nothing of what the programs do.
package process

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Record identifies a process beyond the reuse of its number.
type Record struct {
	PID int `json:"pid"`
	// StartTime is field 22 of /proc/PID/stat, in clock ticks since boot.
	StartTime uint64 `json:"startTime"`
	// Boot is the boot in which it was started, from /proc/sys/kernel/random/boot_id.
	Boot string `json:"boot"`
	// Restarts is how often its supervisor has started it again.
	Restarts int `json:"restarts,omitempty"`
}

// Read returns the record in a file; ok is false when there is none or it does not read as one.
func Read(path string) (record Record, ok bool) {
	content, err := os.ReadFile(path)
	if err != nil || json.Unmarshal(content, &record) != nil {
		return Record{}, false
	}
	return record, record.PID > 1
}

// Alive reads the record in a file and says whether that process still runs.
func Alive(path string) (Record, bool) {
	record, ok := Read(path)
	return record, ok && record.Alive()
}

// Main is Alive for the program of the supervisor that a file remembers.
func Main(path string) (Record, bool) { return Alive(mainRecord(path)) }

// Alive says whether the process still runs. A zombie does not.
func (r Record) Alive() bool {
	started, state, err := stat(r.PID)
	return err == nil && started == r.StartTime && state != "Z" && state != "X" && boot() == r.Boot
}

// Stopped says whether the process is suspended.
func (r Record) Stopped() bool {
	_, state, err := stat(r.PID)
	return err == nil && state == "T"
}

func recordOf(pid int) (Record, error) {
	started, _, err := stat(pid)
	if err != nil {
		return Record{}, err
	}
	return Record{PID: pid, StartTime: started, Boot: boot()}, nil
}

func (r Record) write(path string) error {
	content, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, content, 0o644)
}

func boot() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(id))
}

// stat reads start time and state of proc_pid_stat(5).
func stat(pid int) (started uint64, state string, err error) {
	content, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return 0, "", err
	}
	return parseStat(string(content))
}

func parseStat(stat string) (started uint64, state string, err error) {
	// The name in field 2 is in parentheses and may hold anything, parentheses included.
	end := strings.LastIndexByte(stat, ')')
	fields := strings.Fields(stat[end+1:])
	if end < 0 || len(fields) < 20 {
		return 0, "", fmt.Errorf("stat of a process: %d fields after the name", len(fields))
	}
	started, err = strconv.ParseUint(fields[19], 10, 64)
	if err != nil {
		return 0, "", fmt.Errorf("stat of a process: %w", err)
	}
	return started, fields[0], nil
}

// forget removes the record in a file.
func forget(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
