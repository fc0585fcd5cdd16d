package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// sidecarContainer is the container of refit-sidecar in a pod.
const sidecarContainer = "refit-sidecar"

// program is a container in which a program of Refit runs.
type program struct {
	pod      types.UID
	restarts int32
	limit    int64 // of memory, in bytes; 0: none
}

// programs are refit-manager and the refit-daemons, and each refit-sidecar in the namespace of the fixture, by pod and container.
func (s *fixture) programs(ctx context.Context) (map[string]program, error) {
	found := map[string]program{}
	for _, options := range [][]client.ListOption{daemonPods(), managerPods(), {client.InNamespace(s.namespace)}} {
		var pods corev1.PodList
		if err := s.List(ctx, &pods, options...); err != nil {
			return nil, fmt.Errorf("list pods of Refit: %w", err)
		}
		for i := range pods.Items {
			pod := &pods.Items[i]
			for _, status := range statuses(pod) {
				if pod.Namespace == systemNamespace || status.Name == sidecarContainer {
					c := containerOf(pod, status.Name)
					found[pod.Namespace+"/"+pod.Name+"/"+status.Name] = program{pod.UID, status.RestartCount, c.Resources.Limits.Memory().Value()}
				}
			}
		}
	}
	return found, nil
}

// interrupted says which programs are restarted, or no longer there.
func interrupted(before, after map[string]program) (faults []string) {
	for _, name := range slices.Sorted(maps.Keys(before)) {
		switch was, is := before[name], after[name]; {
		case is.pod != was.pod:
			faults = append(faults, name+": its pod is gone")
		case is.restarts != was.restarts:
			faults = append(faults, fmt.Sprintf("%s: restarted %d times", name, is.restarts-was.restarts))
		}
	}
	return faults
}

// workingSets reads the memory of containers, by pod and container, from an answer of kubelet to /stats/summary.
func workingSets(summary string) (map[string]int64, error) {
	var stats struct {
		Pods []struct {
			PodRef     struct{ Name, Namespace string }
			Containers []struct {
				Name   string
				Memory struct{ WorkingSetBytes *int64 }
			}
		}
	}
	if err := json.Unmarshal([]byte(summary), &stats); err != nil {
		return nil, fmt.Errorf("read summary of kubelet: %w", err)
	}
	found := map[string]int64{}
	for _, pod := range stats.Pods {
		for _, c := range pod.Containers {
			if c.Memory.WorkingSetBytes != nil {
				found[pod.PodRef.Namespace+"/"+pod.PodRef.Name+"/"+c.Name] = *c.Memory.WorkingSetBytes
			}
		}
	}
	return found, nil
}

// memory is what kubelet last measured, up to 20 s ago.
func (s *fixture) memory(ctx context.Context) (map[string]int64, error) {
	found := map[string]int64{}
	var faults error
	for _, node := range s.nodes {
		summary, err := s.kubectl(ctx, "", "get", "--raw", "/api/v1/nodes/"+node+"/proxy/stats/summary")
		if err != nil {
			faults = errors.Join(faults, fmt.Errorf("kubelet of node %s: %w: %.500s", node, err, summary))
			continue
		}
		some, err := workingSets(summary)
		faults = errors.Join(faults, err)
		maps.Copy(found, some)
	}
	return found, faults
}

// judgeMemory returns a line for each program, and a fault for each that is at its limit. A program of which nothing is known is a fault too.
func judgeMemory(programs map[string]program, used map[string]int64) (lines, faults []string) {
	size := func(bytes int64) string { return resource.NewQuantity(bytes>>20<<20, resource.BinarySI).String() }
	for _, name := range slices.Sorted(maps.Keys(programs)) {
		limit, got := programs[name].limit, used[name]
		switch line := fmt.Sprintf("%s: memory %s of %s", name, size(got), size(limit)); {
		case got == 0:
			faults = append(faults, name+": kubelet knows no memory")
		case limit == 0:
			faults = append(faults, name+": no limit of memory")
		case got >= limit:
			faults = append(faults, line)
		default:
			lines = append(lines, line)
		}
	}
	return lines, faults
}

// stillRun fails the test if a program of Refit was restarted since the last time, and returns the programs.
func (s *fixture) stillRun(ctx context.Context, before map[string]program) map[string]program {
	s.t.Helper()
	after, err := s.programs(ctx)
	if err != nil {
		s.t.Errorf("look for restarts: %v", err)
		return before
	}
	for _, fault := range interrupted(before, after) {
		s.t.Error(fault)
	}
	return after
}

// belowLimits prints the memory of programs, and fails the test if one is at its limit.
func (s *fixture) belowLimits(ctx context.Context, programs map[string]program) {
	s.t.Helper()
	used, err := s.memory(ctx)
	if err != nil {
		s.t.Errorf("read memory: %v", err)
	}
	lines, faults := judgeMemory(programs, used)
	for _, line := range lines {
		s.t.Log(line)
	}
	for _, fault := range faults {
		s.t.Error(fault)
	}
}
