package chaos

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/refit-project/refit/test/chaos/history"
)

// The kinds of faults beside those the judge knows by name.
const (
	kindKill            = "daemon-kill"
	kindAPIServerPause  = "apiserver-pause"
	kindAPIServerStop   = "apiserver-stop"
	kindEtcdPause       = "etcd-pause"
	kindManagerKill     = "manager-kill"
	kindPodDelete       = "pod-delete"
	kindPodReplace      = "pod-replace"
	kindNamespaceDelete = "namespace-delete"
)

// journal is where the run writes down what it did.
type journal struct {
	started time.Time

	mu   sync.Mutex
	file *os.File
	out  io.Writer
}

func openJournal(name string, out io.Writer) (*journal, error) {
	file, err := os.Create(name)
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	return &journal{started: time.Now(), file: file, out: out}, nil
}

// fault is written when it is over, which is now.
func (j *journal) fault(fault history.Fault) error {
	fault.End = time.Now()
	line, err := json.Marshal(fault)
	if err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	j.say("%-16s %s, %s", fault.Kind, strings.TrimSpace(fault.Node+" "+fault.Detail), fault.End.Sub(fault.Begin).Round(10*time.Millisecond))
	j.mu.Lock()
	defer j.mu.Unlock()
	if _, err := j.file.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	return nil
}

// say tells the user, with the time since the begin.
func (j *journal) say(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	fmt.Fprintf(j.out, "[%6.1fs] %s\n", time.Since(j.started).Seconds(), fmt.Sprintf(format, args...))
}

func (j *journal) close() error { return j.file.Close() }
