package fakecri_test

import (
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/refit-project/refit/testkit/criconformance"
	"github.com/refit-project/refit/testkit/fakecri"
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
