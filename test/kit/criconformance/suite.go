package criconformance

import (
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/refit-project/refit/cri"
)

// The programs containers are started with, and the commands run in them, by sh -c. A runtime
// without processes has to know these texts.
const (
	Obedient = `trap 'exit 7' TERM; : >/ready; while :; do sleep 0.1; done` // ends at SIGTERM
	Stubborn = `trap '' TERM; : >/ready; while :; do sleep 0.1; done`       // ends at SIGKILL only
	Brief    = `exit 3`                                                     // ends by itself

	ExecBoth   = `echo out; echo err >&2`
	ExecFail   = `exit 3`
	ExecSlow   = `sleep 60`
	ExecBig    = `head -c 200000 /dev/zero | tr '\0' x`
	ExecHuge   = `head -c 4194304 /dev/zero | tr '\0' x`
	ExecDaemon = `sleep 60 & echo started` // leaves a child that holds the output open
	ExecReady  = `test -e /ready`          // succeeds once the program has set its trap
)

// Shell is the command line of a program or exec.
func Shell(script string) []string { return []string{"sh", "-c", script} }

// Fixture is the runtime under test.
type Fixture struct {
	Endpoint string // as cri.Config has it
	Image    string // has sh, sleep, head and tr, and is on the node already
	// Restart restarts the runtime and returns when it has begun to. Nil: not tested.
	Restart func(t *testing.T)
}

// Run runs the suite. setup is called once.
func Run(t *testing.T, setup func(t *testing.T) Fixture) {
	s := newSuite(t, setup(t))
	t.Run("calls", func(t *testing.T) {
		for name, test := range map[string]func(*suite, *testing.T){
			"version":                       (*suite).version,
			"list":                          (*suite).list,
			"list of an unknown pod":        (*suite).listUnknown,
			"status":                        (*suite).status,
			"status of an exited container": (*suite).statusExited,
			"status of an unknown ID":       (*suite).statusUnknown,
			"status by a prefix":            (*suite).statusPrefix,
			"sandbox address":               (*suite).sandboxIP,
			"stop with SIGTERM":             (*suite).stopObedient,
			"stop with SIGKILL":             (*suite).stopStubborn,
			"stop without grace":            (*suite).stopNow,
			"stop given up and repeated":    (*suite).stopRepeated,
			"stop what is not running":      (*suite).stopIdempotent,
			"stop by a prefix":              (*suite).stopPrefix,
			"remove":                        (*suite).remove,
			"exec":                          (*suite).exec,
			"exec past its timeout":         (*suite).execTimeout,
			"exec with much output":         (*suite).execOutput,
			"exec leaves a child":           (*suite).execDaemon,
			"exec in what is not running":   (*suite).execNotRunning,
			"events":                        (*suite).events,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(s, t)
			})
		}
	})
	// After the others, which a restart would disturb.
	t.Run("restart of the runtime", s.restart)
}

type suite struct {
	Fixture
	client *cri.Client
	raw    runtimeapi.RuntimeServiceClient
}

func newSuite(t *testing.T, f Fixture) *suite {
	t.Helper()
	client, err := cri.New(cri.Config{Endpoint: f.Endpoint, ExecMargin: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := grpc.NewClient(f.Endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	})
	return &suite{Fixture: f, client: client, raw: runtimeapi.NewRuntimeServiceClient(conn)}
}
