package cri_test

import (
	"os"
	"os/exec"
	"testing"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/refit-project/refit/test/kit/criconformance"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The suite the fake passes, on a real runtime. It makes and removes pods of its own there. A
// kubelet on the same runtime removes pods it does not know within seconds: pause it meanwhile.
//
//	REFIT_CRI_SOCKET   the runtime's socket; without it the test is skipped
//	REFIT_CRI_IMAGE    an image with a shell, pulled if it is missing; default busybox
//	REFIT_CRI_RESTART  a shell command that restarts the runtime; without it that part is skipped
func TestRealRuntime(t *testing.T) {
	t.Parallel()
	socket := os.Getenv("REFIT_CRI_SOCKET")
	if socket == "" {
		t.Skip("REFIT_CRI_SOCKET does not name the socket of a real runtime")
	}
	criconformance.Run(t, func(t *testing.T) criconformance.Fixture {
		f := criconformance.Fixture{Endpoint: "unix://" + socket, Image: "docker.io/library/busybox:latest"}
		if image := os.Getenv("REFIT_CRI_IMAGE"); image != "" {
			f.Image = image
		}
		pull(t, f)
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

func pull(t *testing.T, f criconformance.Fixture) {
	t.Helper()
	conn, err := grpc.NewClient(f.Endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}()
	images := runtimeapi.NewImageServiceClient(conn)
	spec := &runtimeapi.ImageSpec{Image: f.Image}
	res, err := images.ImageStatus(t.Context(), &runtimeapi.ImageStatusRequest{Image: spec})
	if err != nil {
		t.Fatal(err)
	}
	if res.GetImage() != nil {
		return
	}
	if _, err := images.PullImage(t.Context(), &runtimeapi.PullImageRequest{Image: spec}); err != nil {
		t.Fatal(err)
	}
}
