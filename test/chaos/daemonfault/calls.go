package daemonfault

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"google.golang.org/grpc/codes"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/refit-project/refit/test/chaos/cluster"
	"github.com/refit-project/refit/test/chaos/history/entry"
	"github.com/refit-project/refit/test/criproxy"
)

// Calls is the number of kinds of CRI faults.
func (d *Daemons) Calls() int { return len(callFaults) }

// callFault spoils the daemon's calls of one method.
type callFault struct {
	method string
	fault  criproxy.Fault
	spoil  func(*runtimeapi.ListContainersResponse)
	name   string
}

var callFaults = makeCallFaults()

func makeCallFaults() []callFault {
	half := 0.5
	kinds := []callFault{
		{name: "0.1 s late", fault: criproxy.Fault{Delay: criproxy.Duration(100 * time.Millisecond)}},
		{name: "1 s late", fault: criproxy.Fault{Delay: criproxy.Duration(time.Second)}},
		{name: "10 s late", fault: criproxy.Fault{Delay: criproxy.Duration(10 * time.Second)}},
		{name: "hangs", fault: criproxy.Fault{Hang: true}},
		{name: "Unavailable", fault: criproxy.Fault{Code: criproxy.Code(codes.Unavailable), Message: "chaos"}},
		{name: "DeadlineExceeded", fault: criproxy.Fault{Code: criproxy.Code(codes.DeadlineExceeded), Message: "chaos"}},
		{name: "NotFound", fault: criproxy.Fault{Code: criproxy.Code(codes.NotFound), Message: "chaos"}},
		{name: "ResourceExhausted", fault: criproxy.Fault{Code: criproxy.Code(codes.ResourceExhausted), Message: "chaos"}},
		{name: "answer lost", fault: criproxy.Fault{Code: criproxy.Code(codes.Unavailable), Message: "chaos", After: true, Probability: &half}},
	}
	var all []callFault
	for _, method := range []string{
		"ListContainers", "ContainerStatus", "StopContainer", "RemoveContainer", "ExecSync", "GetContainerEvents", "ListPodSandbox", "PodSandboxStatus",
		"Version", entry.MethodPull, "ImageStatus", "*",
	} {
		for _, kind := range kinds {
			kind.method = method
			all = append(all, kind)
		}
	}
	for name, message := range map[string]string{
		"disk full":          "failed to copy: write /var/lib/containerd/ingest/data: no space left on device",
		"registry is busy":   "failed to pull and unpack image: unexpected status from HEAD request: 429 Too Many Requests",
		"registry is broken": "failed to pull and unpack image: unexpected status from GET request: 503 Service Unavailable",
		"registry is away":   "failed to do request: dial tcp: connect: connection refused",
		"content is cut off": "failed to copy: httpReadSeeker: failed open: unexpected EOF",
	} {
		all = append(all, callFault{method: entry.MethodPull, name: name, fault: criproxy.Fault{Code: criproxy.Code(codes.Unknown), Message: message}})
	}
	return append(all,
		callFault{method: "GetContainerEvents", name: "events lost", fault: criproxy.Fault{Drop: true, Probability: &half}},
		callFault{method: "ListContainers", name: "half is missing", spoil: func(list *runtimeapi.ListContainersResponse) {
			list.Containers = list.Containers[len(list.Containers)/2:]
		}},
		callFault{method: "ListContainers", name: "everything twice", spoil: func(list *runtimeapi.ListContainersResponse) {
			list.Containers = append(list.Containers, list.Containers...)
		}},
	)
}

// Spoil lets the calls of kind n fail for a while.
func (d *Daemons) Spoil(ctx context.Context, n int) error {
	c, length := callFaults[n], 3*time.Second
	if d.long && (c.fault.Hang || time.Duration(c.fault.Delay) > time.Second) {
		length = 8 * time.Second
	}
	begin := time.Now()
	if c.spoil != nil {
		for _, wire := range d.wires {
			wire.spoilLists(c.spoil)
			defer wire.spoilLists(nil)
		}
	} else if err := d.writeCallFaults(map[string]criproxy.Fault{c.method: c.fault}); err != nil {
		return err
	}
	_ = cluster.Pause(ctx, length)
	if c.spoil == nil {
		if err := d.EndCalls(); err != nil {
			return err
		}
	}
	return d.journal.Fault(entry.Fault{Kind: entry.KindCall, Detail: c.method + " " + c.name, Begin: begin, Impedes: true})
}

const callFaultsFile = "cri-faults.json"

// writeCallFaults replaces the file at once: the proxies look at it before each call.
func (d *Daemons) writeCallFaults(faults map[string]criproxy.Fault) error {
	content, err := json.Marshal(faults)
	if err != nil {
		return fmt.Errorf("write CRI faults: %w", err)
	}
	name := d.record(callFaultsFile)
	if err := os.WriteFile(name+".new", content, 0o600); err != nil {
		return fmt.Errorf("write CRI faults: %w", err)
	}
	if err := os.Rename(name+".new", name); err != nil {
		return fmt.Errorf("write CRI faults: %w", err)
	}
	return nil
}

// EndCalls ends the faults that are under way.
func (d *Daemons) EndCalls() error {
	if err := os.Remove(d.record(callFaultsFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("end CRI faults: %w", err)
	}
	return nil
}
