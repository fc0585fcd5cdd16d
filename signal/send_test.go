package signal_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refit-project/refit/signal"
	"github.com/refit-project/refit/test/kit/procfs"
)

// recorder is a kernel that sends nothing. Its hooks run before the call they are named after.
type recorder struct {
	calls            []string
	onOpen, onSend   func()
	openErr, sendErr error
	killErr          error
	opened, closed   int
}

func (r *recorder) PidfdOpen(pid int) (int, error) {
	if r.onOpen != nil {
		r.onOpen()
	}
	if r.openErr != nil {
		return -1, r.openErr
	}
	r.opened++
	return 1000 + pid, nil
}

func (r *recorder) PidfdSend(fd int, sig syscall.Signal) error {
	if r.onSend != nil {
		r.onSend()
	}
	if r.sendErr != nil {
		return r.sendErr
	}
	r.calls = append(r.calls, fmt.Sprintf("pidfd %d %s", fd-1000, signal.Name(sig)))
	return nil
}

func (r *recorder) Kill(pid int, sig syscall.Signal) error {
	if r.killErr != nil {
		return r.killErr
	}
	r.calls = append(r.calls, fmt.Sprintf("kill %d %s", pid, signal.Name(sig)))
	return nil
}

func (r *recorder) Close(int) { r.closed++ }

var master = procfs.Process{PID: 7, PPID: 1, Start: 100, Comm: "nginx", Cmdline: masterTitle + "\x00"}

// Other numbers in a line about a process, such as its UID, are not used as its PID.
func TestTheUIDIsNoPID(t *testing.T) {
	t.Parallel()
	tree := procfs.NewTree(t)
	tree.Put(procfs.Process{PID: 101, Start: 5, Comm: "bystander", Cmdline: "bystander\x00"})
	tree.Put(procfs.Process{PID: 20, PPID: 101, Start: 6, UID: 101, Comm: "nginx", Cmdline: masterTitle + "\x00"})
	rec := &recorder{}
	if _, err := open(t, tree.Root).WithKernel(rec).Signal(t.Context(), signal.Selector{Title: masterTitle}, syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"pidfd 20 SIGTERM"}, rec.calls); diff != "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}
}

// And the hostile processes: what may happen between the match and the signal.
func TestSafeProcessTargeting(t *testing.T) {
	t.Parallel()
	reused := procfs.Process{PID: 7, PPID: 1, Start: 900, Comm: "nginx", Cmdline: masterTitle + "\x00"}
	renamed := master
	renamed.Cmdline = "postgres\x00"
	zombie := master
	zombie.State = 'Z'
	tests := map[string]struct {
		kernel recorder
		// during happens to the tree when the process is already matched and about to be held.
		during func(*procfs.Tree)
		want   []string
		err    error
	}{
		"sent through pidfd":         {want: []string{"pidfd 7 SIGHUP"}},
		"PID reused":                 {during: func(t *procfs.Tree) { t.Put(reused) }, err: signal.ErrGone},
		"renamed itself":             {during: func(t *procfs.Tree) { t.Put(renamed) }, err: signal.ErrGone},
		"ended":                      {during: func(t *procfs.Tree) { t.Remove(7) }, err: signal.ErrGone},
		"became a zombie":            {during: func(t *procfs.Tree) { t.Put(zombie) }, err: signal.ErrGone},
		"ended before it is held":    {kernel: recorder{openErr: syscall.ESRCH}, err: signal.ErrGone},
		"ended when held":            {kernel: recorder{sendErr: syscall.ESRCH}, err: signal.ErrGone},
		"no pidfd_open: kill":        {kernel: recorder{openErr: syscall.ENOSYS}, want: []string{"kill 7 SIGHUP"}},
		"seccomp forbids pidfd_open": {kernel: recorder{openErr: syscall.EPERM}, want: []string{"kill 7 SIGHUP"}},
		"no pidfd_send_signal: kill": {kernel: recorder{sendErr: syscall.ENOSYS}, want: []string{"kill 7 SIGHUP"}},
		"no pidfd, PID reused": {
			kernel: recorder{openErr: syscall.ENOSYS}, during: func(t *procfs.Tree) { t.Put(reused) }, err: signal.ErrGone,
		},
		"no pidfd, renamed": {
			kernel: recorder{openErr: syscall.ENOSYS}, during: func(t *procfs.Tree) { t.Put(renamed) }, err: signal.ErrGone,
		},
		"no pidfd, ended":       {kernel: recorder{openErr: syscall.ENOSYS, killErr: syscall.ESRCH}, err: signal.ErrGone},
		"forbidden":             {kernel: recorder{sendErr: syscall.EPERM}, err: fs.ErrPermission},
		"out of descriptors":    {kernel: recorder{openErr: syscall.EMFILE}, err: syscall.EMFILE},
		"no pidfd and no right": {kernel: recorder{openErr: syscall.ENOSYS, killErr: syscall.EPERM}, err: fs.ErrPermission},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tree := procfs.NewTree(t)
			tree.Put(master)
			rec := tt.kernel
			rec.onOpen = func() {
				if tt.during != nil {
					tt.during(tree)
				}
			}
			sent, err := open(t, tree.Root).WithKernel(&rec).Signal(t.Context(), signal.Selector{Title: masterTitle}, syscall.SIGHUP)
			if !errors.Is(err, tt.err) || (err == nil) != (tt.err == nil) {
				t.Errorf("err = %v, want %v", err, tt.err)
			}
			if diff := cmp.Diff(tt.want, rec.calls); diff != "" {
				t.Errorf("sent (-want +got):\n%s", diff)
			}
			if len(sent) != len(tt.want) {
				t.Errorf("reports %v", sent)
			}
			if rec.opened != rec.closed {
				t.Errorf("%d pidfds opened, %d closed", rec.opened, rec.closed)
			}
		})
	}
}

func TestSignalAll(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		gone []int
		want []string
		err  error
	}{
		"all there":    {want: []string{"pidfd 7 SIGTERM", "pidfd 8 SIGTERM", "pidfd 9 SIGTERM"}},
		"one vanished": {gone: []int{8}, want: []string{"pidfd 7 SIGTERM", "pidfd 9 SIGTERM"}},
		"all vanished": {gone: []int{7, 8, 9}, err: signal.ErrGone},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tree := procfs.NewTree(t)
			for _, pid := range []int{7, 8, 9} {
				tree.Put(procfs.Process{PID: pid, Comm: "app", Cmdline: "app\x00"})
			}
			rec := &recorder{onOpen: func() {
				for _, pid := range tt.gone {
					tree.Remove(pid)
				}
			}}
			sel := signal.Selector{Comm: "app", Choice: signal.All}
			sent, err := open(t, tree.Root).WithKernel(rec).Signal(t.Context(), sel, syscall.SIGTERM)
			if !errors.Is(err, tt.err) || (err == nil) != (tt.err == nil) {
				t.Errorf("err = %v, want %v", err, tt.err)
			}
			if diff := cmp.Diff(tt.want, rec.calls); diff != "" || len(sent) != len(tt.want) {
				t.Errorf("reports %v, sent (-want +got):\n%s", sent, diff)
			}
		})
	}
}

// A known process is signalled without a search: its title is not compared, its start time is.
func TestSafeProcessTargetingOfAKnownProcess(t *testing.T) {
	t.Parallel()
	found := signal.Process{PID: 7, Start: 100, Comm: "nginx"}
	tests := map[string]struct {
		process signal.Process
		want    []string
		err     error
	}{
		"known":             {process: found, want: []string{"pidfd 7 SIGHUP"}},
		"PID reused":        {process: signal.Process{PID: 7, Start: 99}, err: signal.ErrGone},
		"ended":             {process: signal.Process{PID: 70, Start: 100}, err: signal.ErrGone},
		"ourselves":         {process: signal.Process{PID: 50, Start: 50}, err: signal.ErrForbidden},
		"the sandbox":       {process: signal.Process{PID: 1, Sandbox: true}, err: signal.ErrForbidden},
		"nobody is not 0":   {process: signal.Process{}, err: signal.ErrNotFound},
		"everybody, PID -1": {process: signal.Process{PID: -1}, err: signal.ErrNotFound},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tree := procfs.NewTree(t)
			tree.Self(50)
			tree.Put(procfs.Process{PID: 50, Start: 50, Comm: "refit-sidecar"})
			tree.Put(procfs.Process{PID: 1, Comm: "pause", Cmdline: "/pause\x00"})
			tree.Put(procfs.Process{PID: 7, Start: 100, Comm: "renamed", Cmdline: "another title\x00"})
			rec := &recorder{}
			err := open(t, tree.Root).WithKernel(rec).Send(tt.process, syscall.SIGHUP)
			if !errors.Is(err, tt.err) || (err == nil) != (tt.err == nil) {
				t.Errorf("err = %v, want %v", err, tt.err)
			}
			if diff := cmp.Diff(tt.want, rec.calls); diff != "" {
				t.Errorf("sent (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSendRefusesSignalZero(t *testing.T) {
	t.Parallel()
	rec := &recorder{}
	tree := procfs.NewTree(t)
	tree.Put(master)
	fs := open(t, tree.Root).WithKernel(rec)
	if err := fs.Send(signal.Process{PID: 7, Start: 100}, 0); err == nil || len(rec.calls) > 0 {
		t.Errorf("err = %v, sent %v", err, rec.calls)
	}
	if err := fs.Check(signal.Process{PID: 7, Start: 100}); err != nil {
		t.Errorf("Check: %v", err)
	}
}

// EPERM is explained from the UIDs and CAP_KILL that status shows of both.
func TestPermissionErrorSaysWhy(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		own  procfs.Process
		caps string
		want string
	}{
		"other UID":             {own: procfs.Process{UID: 65532}, caps: "0000000000000000", want: "runs as UID 101, this program as UID 65532 without CAP_KILL"},
		"root without CAP_KILL": {own: procfs.Process{UID: 0}, caps: "00000000000000d1", want: "this program as UID 0 without CAP_KILL"},
		"CAP_KILL is there":     {own: procfs.Process{UID: 0}, caps: "0000000000000020", want: "security module"},
		"same UID":              {own: procfs.Process{UID: 101}, caps: "0000000000000000", want: "security module"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tree := procfs.NewTree(t)
			tree.Self(50)
			tt.own.PID = 50
			tree.Put(tt.own)
			tree.Status(50, strings.Replace(procfs.StatusText(tt.own), "0000000000000000", tt.caps, 1))
			tree.Put(procfs.Process{PID: 7, Start: 100, Comm: "app", UID: 101})
			rec := &recorder{sendErr: syscall.EPERM}
			_, err := open(t, tree.Root).WithKernel(rec).Signal(t.Context(), signal.Selector{Comm: "app"}, syscall.SIGHUP)
			var denied *signal.PermissionError
			if !errors.As(err, &denied) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("err = %v, want %q", err, tt.want)
			}
		})
	}
}

// The /proc of a node's own PID namespace may show this program under the number that it has in its own.
func TestProcessesOfAnotherNamespaceAreNeverSignalled(t *testing.T) {
	t.Parallel()
	for numbers, foreign := range map[string]bool{"": false, "PID": false, "PID 7": true} {
		tree := procfs.NewTree(t)
		tree.Self(os.Getpid())
		tree.Put(master)
		own := procfs.Process{PID: os.Getpid(), Start: 5, Comm: "refit-sidecar"}
		tree.Put(own)
		text := strings.Split(procfs.StatusText(own), "NSpid:")[0] + "CapEff:\t0000000000000000\n"
		if numbers != "" {
			text += "NSpid:\t" + strings.ReplaceAll(strings.ReplaceAll(numbers, "PID", fmt.Sprint(os.Getpid())), " ", "\t") + "\n"
		}
		tree.Status(os.Getpid(), text)
		// Nothing is sent where it is allowed either: no process has this start time.
		err := open(t, tree.Root).Send(signal.Process{PID: master.PID, Start: 99}, syscall.SIGHUP)
		if errors.Is(err, signal.ErrForeign) != foreign || errors.Is(err, signal.ErrGone) == foreign {
			t.Errorf("NSpid %q: %v", numbers, err)
		}
	}
}

// A captured tree, or the /proc of another PID namespace, names other processes by our PIDs.
func TestForeignTreeIsNeverSignalled(t *testing.T) {
	t.Parallel()
	tree := procfs.NewTree(t)
	tree.Self(50)
	tree.Put(procfs.Process{PID: 50})
	tree.Put(master)
	if _, err := open(t, tree.Root).Signal(t.Context(), signal.Selector{Comm: "nginx"}, syscall.SIGHUP); !errors.Is(err, signal.ErrForeign) {
		t.Errorf("err = %v, want ErrForeign", err)
	}
}
