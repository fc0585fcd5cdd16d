package records

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/refit-project/refit/test/chaos/history/entry"
)

// The kinds of faults beside those the judge knows by name.
const (
	KindAPIServerPause  = "apiserver-pause"
	KindEtcdPause       = "etcd-pause"
	KindSecondManager   = "second-manager"
	KindPodDelete       = "pod-delete"
	KindPodReplace      = "pod-replace"
	KindNamespaceDelete = "namespace-delete"
)

// DetailNodeAnew is of a restart of kubelet before which the object of its node was deleted.
const DetailNodeAnew = "registered anew"

// Journal is where the run writes down what it did.
type Journal struct {
	started time.Time

	mu   sync.Mutex
	file *os.File
	out  io.Writer
}

// OpenJournal creates the file name for the faults. Progress goes to out.
func OpenJournal(name string, out io.Writer) (*Journal, error) {
	file, err := os.Create(name)
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	return &Journal{started: time.Now(), file: file, out: out}, nil
}

// Fault is written when it is over, which is now.
func (j *Journal) Fault(fault entry.Fault) error {
	fault.End = time.Now()
	line, err := json.Marshal(fault)
	if err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	j.Say("%-16s %s, %s", fault.Kind, strings.TrimSpace(fault.Node+" "+fault.Detail), fault.End.Sub(fault.Begin).Round(10*time.Millisecond))
	j.mu.Lock()
	defer j.mu.Unlock()
	if _, err := j.file.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	return nil
}

// Say tells the user, with the time since the begin.
func (j *Journal) Say(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	fmt.Fprintf(j.out, "[%6.1fs] %s\n", time.Since(j.started).Seconds(), fmt.Sprintf(format, args...))
}

// Close closes the file.
func (j *Journal) Close() error { return j.file.Close() }
