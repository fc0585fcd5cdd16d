package signal

import (
	"fmt"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Real-time signals as in the C library, which reserves 32 and 33 (signal(7)).
const (
	realtimeMin = 34
	realtimeMax = 64
)

// Parse reads a signal by name, with or without SIG and in any case ("HUP", "sighup", "RTMIN+3"), or by number. Zero is not
// a signal.
func Parse(s string) (syscall.Signal, error) {
	if n, err := strconv.Atoi(s); err == nil {
		if n < 1 || n > realtimeMax {
			return 0, fmt.Errorf("signal %d: not between 1 and %d", n, realtimeMax)
		}
		return syscall.Signal(n), nil
	}
	name := "SIG" + strings.TrimPrefix(strings.ToUpper(s), "SIG")
	if n := unix.SignalNum(name); n != 0 {
		return n, nil
	}
	if n, ok := parseRealtime(name); ok {
		return n, nil
	}
	return 0, fmt.Errorf("signal %q: unknown name", clip([]byte(s)))
}

func parseRealtime(name string) (syscall.Signal, bool) {
	for prefix, base := range map[string]int{"SIGRTMIN": realtimeMin, "SIGRTMAX": realtimeMax} {
		offset, ok := strings.CutPrefix(name, prefix)
		if !ok {
			continue
		}
		if offset == "" {
			return syscall.Signal(base), true
		}
		n, err := strconv.Atoi(offset)
		if err != nil || (offset[0] != '+' && offset[0] != '-') {
			return 0, false
		}
		n += base
		return syscall.Signal(n), n >= realtimeMin && n <= realtimeMax
	}
	return 0, false
}

// Name is the inverse of Parse, such as "SIGHUP".
func Name(sig syscall.Signal) string {
	if name := unix.SignalName(sig); name != "" {
		return name
	}
	if sig >= realtimeMin && sig <= realtimeMax {
		return fmt.Sprintf("SIGRTMIN+%d", int(sig)-realtimeMin)
	}
	return strconv.Itoa(int(sig))
}
