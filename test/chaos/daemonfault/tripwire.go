package daemonfault

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/refit-project/refit/test/chaos/cluster"
	"github.com/refit-project/refit/test/criproxy"
)

// tripwire sees every call of the daemon to the runtime. It knows by that which process the daemon of the node is,
// kills it at a point it was told, and spoils lists.
type tripwire struct {
	node string

	mu    sync.Mutex
	pid   int
	since time.Time // of the process's first call
	armed func(call criproxy.Line, answered bool) (time.Duration, bool)
	shot  chan struct{}
	spoil func(*runtimeapi.ListContainersResponse)
}

// Came implements criproxy.Interceptor.
func (t *tripwire) Came(call criproxy.Line) {
	var pid int
	if _, err := fmt.Sscanf(call.Caller, "pid=%d", &pid); err == nil && isDaemon(pid) {
		t.mu.Lock()
		if pid != t.pid {
			t.pid, t.since = pid, time.Now()
		}
		t.mu.Unlock()
	}
	t.check(call, false)
}

// Answered implements criproxy.Interceptor.
func (t *tripwire) Answered(call criproxy.Line, answer []byte) []byte {
	t.check(call, true)
	t.mu.Lock()
	spoil := t.spoil
	t.mu.Unlock()
	if spoil == nil || call.Method != "ListContainers" {
		return answer
	}
	var list runtimeapi.ListContainersResponse
	if err := proto.Unmarshal(answer, &list); err != nil {
		return answer
	}
	spoil(&list)
	spoilt, err := proto.Marshal(&list)
	if err != nil {
		return answer
	}
	return spoilt
}

// check shoots when the armed point is reached: at once, while the call is held, or a moment later, while it is
// under way.
func (t *tripwire) check(call criproxy.Line, answered bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.armed == nil {
		return
	}
	delay, hit := t.armed(call, answered)
	if !hit {
		return
	}
	t.armed = nil
	if delay == 0 {
		t.shootLocked()
		return
	}
	time.AfterFunc(delay, t.shoot)
}

// arm returns a channel that is closed when the daemon has been killed.
func (t *tripwire) arm(point func(call criproxy.Line, answered bool) (time.Duration, bool)) <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.armed, t.shot = point, make(chan struct{})
	return t.shot
}

func (t *tripwire) disarm() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.armed, t.shot = nil, nil
}

// shoot kills the daemon, whatever it is doing.
func (t *tripwire) shoot() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.shootLocked()
}

func (t *tripwire) shootLocked() {
	if t.shot == nil || !isDaemon(t.pid) {
		return
	}
	if syscall.Kill(t.pid, syscall.SIGKILL) == nil {
		close(t.shot)
		t.shot = nil
	}
}

// process is the daemon's, and when it made its first call.
func (t *tripwire) process() (pid int, since time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.pid, t.since
}

func (t *tripwire) spoilLists(spoil func(*runtimeapi.ListContainersResponse)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.spoil = spoil
}

// isDaemon makes sure that a number still belongs to a daemon: numbers are used again.
func isDaemon(pid int) bool {
	if pid <= 1 {
		return false
	}
	comm, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	return err == nil && strings.TrimSpace(string(comm)) == cluster.DaemonName
}
