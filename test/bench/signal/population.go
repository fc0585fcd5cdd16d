package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
)

// population is a number of sleeping processes in one process group. The kernel ends them with the thread that
// started them, so the caller keeps its goroutine locked to one.
type population struct {
	program string
	group   int
	members []int
}

func newPopulation(dir string) (*population, error) {
	program := filepath.Join(dir, "sleeper")
	if runtime.GOARCH != "amd64" {
		return &population{program: "/bin/sleep"}, nil
	}
	if err := os.WriteFile(program, sleeper(), 0o755); err != nil {
		return nil, err
	}
	return &population{program: program}, nil
}

// sleeper is a static program of 129 bytes that calls pause(2) for ever: ten thousand of them cost what the
// kernel keeps of a process and nothing more.
func sleeper() []byte {
	const base, header = 0x400000, 64 + 56
	code := []byte{0xb8, 34, 0, 0, 0, 0x0f, 0x05, 0xeb, 0xf7} // again: mov $SYS_pause, %eax; syscall; jmp again
	b := []byte("\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00")
	b = binary.LittleEndian.AppendUint16(b, 2)    // executable
	b = binary.LittleEndian.AppendUint16(b, 0x3e) // x86-64
	b = binary.LittleEndian.AppendUint32(b, 1)
	b = binary.LittleEndian.AppendUint64(b, base+header) // entry
	b = binary.LittleEndian.AppendUint64(b, 64)          // program headers
	b = binary.LittleEndian.AppendUint64(b, 0)           // section headers
	b = binary.LittleEndian.AppendUint32(b, 0)
	for _, n := range []uint16{64, 56, 1, 0, 0, 0} {
		b = binary.LittleEndian.AppendUint16(b, n)
	}
	b = binary.LittleEndian.AppendUint32(b, 1) // load
	b = binary.LittleEndian.AppendUint32(b, 5) // read and execute
	size := uint64(header + len(code))
	for _, n := range []uint64{0, base, base, size, size, 0x1000} {
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	return append(b, code...)
}

// grow adds members until /proc shows total processes.
func (c *population) grow(total int) error {
	n, err := countProcesses()
	if err != nil {
		return err
	}
	for ; n < total; n++ {
		// An argument list of ordinary length, about as long as a web server's worker has.
		args := []string{c.program, "3600", "--worker=" + strconv.Itoa(n), "--config=/etc/service/service.conf", "--log-level=info"}
		if c.program == "/bin/sleep" {
			args = args[:2]
		}
		// Not os.StartProcess: it would keep a descriptor for each.
		pid, err := syscall.ForkExec(c.program, args, &syscall.ProcAttr{
			Env: []string{},
			Sys: &syscall.SysProcAttr{Setpgid: true, Pgid: c.group, Pdeathsig: syscall.SIGKILL},
		})
		if err != nil {
			return fmt.Errorf("start process %d: %w", n, err)
		}
		c.members = append(c.members, pid)
		if c.group == 0 {
			c.group = pid
		}
	}
	return nil
}

// stop ends all members and waits for each.
func (c *population) stop() error {
	if c.group == 0 {
		return nil
	}
	err := syscall.Kill(-c.group, syscall.SIGKILL)
	for _, pid := range c.members {
		for {
			_, waitErr := syscall.Wait4(pid, nil, 0, nil)
			if !errors.Is(waitErr, syscall.EINTR) {
				break
			}
		}
	}
	return err
}

func countProcesses() (int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return 0, err
	}
	n := 0
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err == nil {
			n++
		}
	}
	return n, nil
}
