package sidecarmode

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// protectEnv makes the test binary a process that waits to be looked into, closed or not.
const protectEnv = "REFIT_TEST_PROTECT"

func init() {
	mode := os.Getenv(protectEnv)
	if mode == "" {
		return
	}
	if mode == "closed" {
		if err := closeProcess(); err != nil {
			panic(err)
		}
	}
	fmt.Println("ready")
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	os.Exit(0)
}

// A process of the same user, such as the application beside a non-root sidecar, cannot read its files through /proc.
func TestFilesOfTheSidecarAreClosedToProcessesOfItsUser(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("needs root to become another user")
	}
	// A file that others cannot execute is not dumpable either, so the binary has to be readable for the user.
	program := copyForOthers(t)
	for mode, readable := range map[string]bool{"open": true, "closed": false} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			user := &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65532, Gid: 65532}}
			sidecar := exec.CommandContext(t.Context(), program)
			sidecar.Env, sidecar.SysProcAttr, sidecar.Dir = []string{protectEnv + "=" + mode}, user, "/"
			in, err := sidecar.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			out, err := sidecar.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := sidecar.Start(); err != nil {
				t.Fatal(err)
			}
			if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
				t.Fatal(err)
			}
			for _, what := range []string{"root/etc/hostname", "environ"} {
				app := exec.CommandContext(t.Context(), "/bin/cat", fmt.Sprintf("/proc/%d/%s", sidecar.Process.Pid, what))
				app.SysProcAttr = user
				if err := app.Run(); (err == nil) != readable {
					t.Errorf("%s: %v", what, err)
				}
			}
			_ = in.Close()
			_ = sidecar.Wait()
		})
	}
}

func copyForOthers(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.CreateTemp("/tmp", "refit-sidecarmode-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(f.Name()) })
	if _, err := f.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := f.Chmod(0o755); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return f.Name()
}
