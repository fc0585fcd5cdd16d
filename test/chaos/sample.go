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
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
	leader := ""
	for cluster.Pause(ctx, sampleEvery) == nil {
		leader = r.leader(ctx, leader)
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
			sample.Leads = leader != "" && program == cluster.ManagerName && hostname(filepath.Dir(process)) == leader
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

// leader is the name of the manager's pod that leads: as before while the API server does not answer.
func (r *run) leader(ctx context.Context, before string) string {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	var lease coordinationv1.Lease
	err := r.cluster.Get(ctx, client.ObjectKey{Namespace: cluster.SystemNamespace, Name: cluster.ManagerName}, &lease)
	if err != nil || lease.Spec.HolderIdentity == nil {
		return before
	}
	name, _, _ := strings.Cut(*lease.Spec.HolderIdentity, "_")
	return name
}

// hostname is the host name of the process in a folder of /proc, in a pod the pod's name.
func hostname(folder string) string {
	environment, _ := os.ReadFile(filepath.Join(folder, "environ"))
	for variable := range strings.SplitSeq(string(environment), "\x00") {
		if name, ok := strings.CutPrefix(variable, "HOSTNAME="); ok {
			return name
		}
	}
	return ""
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
