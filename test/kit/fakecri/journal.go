package fakecri

import (
	"context"
	"path"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/refit-project/refit/internal/wait"
)

// Call is one call as it came in.
type Call struct {
	At          time.Time
	Method      string // for example StopContainer
	ContainerID string // as the caller wrote it
	Timeout     time.Duration
	Command     []string // ExecSync
	Done        bool     // it has been answered, with Code
	Code        codes.Code
}

// Fault is what goes wrong with the calls of one method. What is set applies in the order Delay,
// Hang, Code.
type Fault struct {
	Delay time.Duration
	// Hang gives no answer until the caller or the runtime's socket goes away.
	Hang bool
	// Code and Message are answered in place of the truth.
	Code    codes.Code
	Message string
	// After lets the call take effect first: only the answer is late or lost.
	After bool
	// Edit changes a good answer, a *runtimeapi.…Response, before it is sent.
	Edit func(answer any)
	// Lose drops the events of GetContainerEvents; the stream goes on.
	Lose bool
	// Times is how many calls (with Lose: events) are affected; 0: all until ClearFaults.
	Times int
}

// DoubleEntries is an Edit for ListContainers and ListPodSandbox: everything is there twice.
func DoubleEntries(answer any) {
	switch m := answer.(type) {
	case *runtimeapi.ListContainersResponse:
		m.Containers = append(m.Containers, m.Containers...)
	case *runtimeapi.ListPodSandboxResponse:
		m.Items = append(m.Items, m.Items...)
	}
}

// HalveEntries is an Edit for ListContainers: the list breaks off in the middle.
func HalveEntries(answer any) {
	if m, ok := answer.(*runtimeapi.ListContainersResponse); ok {
		m.Containers = m.Containers[:len(m.Containers)/2]
	}
}

// journal records calls and applies faults.
type journal struct {
	journalMu sync.Mutex
	calls     []Call
	faults    map[string]Fault
}

// SetFault replaces the fault of a method.
func (j *journal) SetFault(method string, f Fault) {
	j.journalMu.Lock()
	defer j.journalMu.Unlock()
	if j.faults == nil {
		j.faults = map[string]Fault{}
	}
	j.faults[method] = f
}

// ClearFaults makes everything well again. Calls that hang go on hanging.
func (j *journal) ClearFaults() {
	j.journalMu.Lock()
	defer j.journalMu.Unlock()
	j.faults = nil
}

// Calls is what was called so far in the order of arrival: of the named methods, or of all.
func (j *journal) Calls(methods ...string) []Call {
	j.journalMu.Lock()
	defer j.journalMu.Unlock()
	var list []Call
	for _, c := range j.calls {
		if len(methods) == 0 {
			list = append(list, c)
		}
		for _, m := range methods {
			if c.Method == m {
				list = append(list, c)
			}
		}
	}
	return list
}

// fault takes one use of a method's fault. Loss is per event, so that is asked for apart.
func (j *journal) fault(method string, lose bool) Fault {
	j.journalMu.Lock()
	defer j.journalMu.Unlock()
	f, ok := j.faults[method]
	if !ok || f.Lose != lose {
		return Fault{}
	}
	switch f.Times {
	case 0:
	case 1:
		delete(j.faults, method)
	default:
		left := f
		left.Times--
		j.faults[method] = left
	}
	return f
}

func (j *journal) note(method string, req any) (index int) {
	call := Call{At: time.Now(), Method: method}
	if r, ok := req.(interface{ GetContainerId() string }); ok {
		call.ContainerID = r.GetContainerId()
	}
	if r, ok := req.(interface{ GetTimeout() int64 }); ok {
		call.Timeout = time.Duration(r.GetTimeout()) * time.Second
	}
	if r, ok := req.(*runtimeapi.ExecSyncRequest); ok {
		call.Command = r.GetCmd()
	}
	j.journalMu.Lock()
	defer j.journalMu.Unlock()
	j.calls = append(j.calls, call)
	return len(j.calls) - 1
}

func (j *journal) answered(index int, err error) {
	j.journalMu.Lock()
	defer j.journalMu.Unlock()
	j.calls[index].Done, j.calls[index].Code = true, status.Code(err)
}

func (j *journal) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (res any, err error) {
	method := path.Base(info.FullMethod)
	index := j.note(method, req)
	defer func() { j.answered(index, err) }()
	f := j.fault(method, false)
	if f.After {
		if res, err = next(ctx, req); err != nil {
			return nil, err
		}
	}
	if err := f.strike(ctx); err != nil {
		return nil, err
	}
	if !f.After {
		if res, err = next(ctx, req); err != nil {
			return nil, err
		}
	}
	if f.Edit != nil {
		f.Edit(res)
	}
	return res, nil
}

func (j *journal) stream(srv any, s grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) (err error) {
	method := path.Base(info.FullMethod)
	index := j.note(method, nil)
	defer func() { j.answered(index, err) }()
	if err := j.fault(method, false).strike(s.Context()); err != nil {
		return err
	}
	return next(srv, s)
}

func (f Fault) strike(ctx context.Context) error {
	if f.Delay > 0 {
		if err := wait.For(ctx, f.Delay); err != nil {
			return status.FromContextError(err).Err()
		}
	}
	if f.Hang {
		<-ctx.Done()
		return status.FromContextError(ctx.Err()).Err()
	}
	if f.Code != codes.OK {
		return status.Error(f.Code, f.Message)
	}
	return nil
}
