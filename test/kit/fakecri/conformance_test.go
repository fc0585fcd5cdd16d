package fakecri_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/refit-project/refit/test/kit/criconformance"
	"github.com/refit-project/refit/test/kit/fakecri"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) {
	t.Parallel()
	criconformance.Run(t, func(t *testing.T) criconformance.Fixture {
		runtime := fakecri.Start(t)
		for script, program := range map[string]fakecri.Program{
			criconformance.Obedient: {ExitCode: 7, TermDelay: 50 * time.Millisecond},
			criconformance.Stubborn: {IgnoreTerm: true},
			criconformance.Brief:    {ExitCode: 3, Lifetime: 50 * time.Millisecond},
		} {
			runtime.Programs["sh -c "+script] = program
		}
		for script, command := range map[string]fakecri.Command{
			criconformance.ExecReady:  {},
			criconformance.ExecBoth:   {Stdout: "out\n", Stderr: "err\n"},
			criconformance.ExecFail:   {ExitCode: 3},
			criconformance.ExecSlow:   {Takes: time.Minute},
			criconformance.ExecBig:    {Stdout: strings.Repeat("x", 200_000)},
			criconformance.ExecHuge:   {Stdout: strings.Repeat("x", 4<<20)},
			criconformance.ExecDaemon: {Stdout: "started\n", HoldsOutput: true},
		} {
			runtime.Commands["sh -c "+script] = command
		}
		return criconformance.Fixture{
			Endpoint: runtime.Endpoint(), Image: "busybox:latest",
			Restart: func(t *testing.T) {
				if err := runtime.Restart(300 * time.Millisecond); err != nil {
					t.Fatal(err)
				}
			},
		}
	})
}

// The words are those that containerd 2.4 was seen to answer with.
func TestPullConformance(t *testing.T) {
	t.Parallel()
	runtime := fakecri.Start(t)
	refused := func(code codes.Code, text string) error {
		return status.Error(code, "failed to pull and unpack image: failed to resolve reference: "+text)
	}
	faults := map[criconformance.PullFault]fakecri.RegistryImage{
		criconformance.PullWell:         {ID: "sha256:id"},
		criconformance.PullUnauthorized: {Err: refused(codes.Unknown, "unexpected status from HEAD request to https://reg.test/v2/: 401 Unauthorized")},
		criconformance.PullMissing:      {Err: refused(codes.NotFound, "not found")},
		criconformance.PullLimited:      {Err: refused(codes.Unknown, "unexpected status from HEAD request to https://reg.test/v2/: 429 Too Many Requests")},
		criconformance.PullAway:         {Err: refused(codes.Unknown, "unexpected status from HEAD request to https://reg.test/v2/: 503 Service Unavailable")},
		criconformance.PullWrongDigest:  {Err: refused(codes.FailedPrecondition, "unexpected commit digest sha256:1, expected sha256:2: failed precondition")},
		criconformance.PullStalls:       {ID: "sha256:id", Takes: time.Hour},
	}
	var served atomic.Int32
	criconformance.RunPulls(t, criconformance.PullFixture{Endpoint: runtime.Endpoint(), Serve: func(_ *testing.T, fault criconformance.PullFault) (name, digest string) {
		name, digest = fmt.Sprintf("reg.test/%s-%d", fault, served.Add(1)), "sha256:"+strings.Repeat("0", 64)
		runtime.PutImage(name+":v1", faults[fault])
		runtime.PutImage(name+"@"+digest, faults[fault])
		return name, digest
	}})
}
