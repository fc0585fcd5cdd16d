package cri_test

import (
	"os"
	"os/exec"
	"testing"

	"go.uber.org/goleak"

	"github.com/refit-project/refit/testkit/criconformance"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The suite the fake passes, on a real runtime. It makes and removes pods of its own there.
//
//	REFIT_CRI_SOCKET   the runtime's socket; without it the test is skipped
//	REFIT_CRI_IMAGE    an image with a shell that the runtime has already
//	REFIT_CRI_RESTART  a shell command that restarts the runtime; without it that part is skipped
func TestRealRuntime(t *testing.T) {
	t.Parallel()
	socket := os.Getenv("REFIT_CRI_SOCKET")
	if socket == "" {
		t.Skip("REFIT_CRI_SOCKET does not name the socket of a real runtime")
	}
	criconformance.Run(t, func(*testing.T) criconformance.Fixture {
		f := criconformance.Fixture{Endpoint: "unix://" + socket, Image: "docker.io/library/busybox:latest"}
		if image := os.Getenv("REFIT_CRI_IMAGE"); image != "" {
			f.Image = image
		}
		if restart := os.Getenv("REFIT_CRI_RESTART"); restart != "" {
			f.Restart = func(t *testing.T) {
				if out, err := exec.CommandContext(t.Context(), "sh", "-c", restart).CombinedOutput(); err != nil {
					t.Fatalf("restart the runtime: %v\n%s", err, out)
				}
			}
		}
		return f
	})
}
