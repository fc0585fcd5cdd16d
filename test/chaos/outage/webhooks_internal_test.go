package outage

import (
	"errors"
	"maps"
	"syscall"
	"testing"
)

// A manager that stayed suspended would fail whatever comes after the outage.
func TestNoManagerStaysSuspended(t *testing.T) {
	t.Parallel()
	pids := []int{1001, 1002, 1003}
	for name, tt := range map[string]struct {
		failing map[int]error // of SIGSTOP
		fails   bool
		want    map[int]syscall.Signal // the last signal of each process
	}{
		"all are suspended":   {want: map[int]syscall.Signal{1001: syscall.SIGSTOP, 1002: syscall.SIGSTOP, 1003: syscall.SIGSTOP}},
		"one has ended":       {failing: map[int]error{1002: syscall.ESRCH}, want: map[int]syscall.Signal{1001: syscall.SIGSTOP, 1003: syscall.SIGSTOP}},
		"one may not be":      {failing: map[int]error{1002: syscall.EPERM}, fails: true, want: map[int]syscall.Signal{1001: syscall.SIGCONT, 1002: syscall.SIGCONT, 1003: syscall.SIGCONT}},
		"the last may not be": {failing: map[int]error{1003: syscall.EPERM}, fails: true, want: map[int]syscall.Signal{1001: syscall.SIGCONT, 1002: syscall.SIGCONT, 1003: syscall.SIGCONT}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := map[int]syscall.Signal{}
			err := suspend(pids, func(pid int, s syscall.Signal) error {
				if err := tt.failing[pid]; err != nil && s == syscall.SIGSTOP {
					return err
				}
				got[pid] = s
				return nil
			})
			if (err != nil) != tt.fails || !maps.Equal(got, tt.want) {
				t.Errorf("signals %v, %v; want %v", got, err, tt.want)
			}
		})
	}
}

func TestManagersGoOnWhateverBecomesOfOthers(t *testing.T) {
	t.Parallel()
	var resumed []int
	err := resume([]int{1001, 1002, 1003}, func(pid int, _ syscall.Signal) error {
		switch pid {
		case 1001:
			return syscall.EPERM
		case 1002:
			return syscall.ESRCH
		}
		resumed = append(resumed, pid)
		return nil
	})
	if len(resumed) != 1 || !errors.Is(err, syscall.EPERM) {
		t.Errorf("resumed %v, %v; want the third, and the error of the first", resumed, err)
	}
}
