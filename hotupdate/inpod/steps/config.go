// Package steps is the configuration of the actions for new files: they check a candidate, reload the program, or verify it
// afterwards.
//
// It contains: the configuration, its translation for the package hotupdate/action, and the adapters to processes, commands
// and probes. The order of an update must stay out.
package steps

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/refit-project/refit/hotupdate/action"
	"github.com/refit-project/refit/internal/process"
	"github.com/refit-project/refit/plugin"
	"github.com/refit-project/refit/probe/endpoint"
	"github.com/refit-project/refit/signal"
)

// Signal is sent to the selected process.
type Signal struct {
	process.Config `yaml:",inline"`
	SignalName     string `yaml:"signalName"`
}

// Action is one step of a chain: exactly one of signal, request, exec and touch.
type Action struct {
	Name    string   `yaml:"name"`
	Signal  *Signal  `yaml:"signal"`
	Request *Request `yaml:"request"`
	// Exec is run in the sidecar's container. {path}, {dir} and {version} stand for the candidate's folder, the shared
	// folder and the version. A version with characters that a shell would interpret is refused if a command has {version}.
	Exec []string `yaml:"exec"`
	// Touch sets the times of a file of the folder.
	Touch          string  `yaml:"touch"`
	TimeoutSeconds float64 `yaml:"timeoutSeconds"`
	Attempts       int     `yaml:"attempts"`
	PauseSeconds   float64 `yaml:"pauseSeconds"`
}

// Verify says when the program has accepted new files; otherwise they are rolled back.
type Verify struct {
	// Checks are endpoints as in http_probe, with {version} for the version.
	Checks          []endpoint.Endpoint `yaml:"checks"`
	WithinSeconds   float64             `yaml:"withinSeconds"`
	ForSeconds      float64             `yaml:"forSeconds"`
	IntervalSeconds float64             `yaml:"intervalSeconds"`
}

// Actions translates a list of steps; where is for messages.
func Actions(where string, all []Action, host plugin.Host) ([]action.Action, error) {
	made := make([]action.Action, 0, len(all))
	var errs []error
	for i, a := range all {
		one, err := a.Action(fmt.Sprintf("%s[%d]", where, i), host)
		errs = append(errs, err)
		made = append(made, one)
	}
	return made, errors.Join(errs...)
}

// Action translates one step; where is for messages.
func (a Action) Action(where string, host plugin.Host) (action.Action, error) {
	step, name, err := a.step(host)
	if err != nil {
		err = fmt.Errorf("%s: %w", where, err)
	}
	return action.Action{
		Name: cmp.Or(a.Name, name), Step: step, Timeout: seconds(a.TimeoutSeconds), Attempts: a.Attempts, Pause: seconds(a.PauseSeconds),
	}, err
}

func (a Action) step(host plugin.Host) (step action.Step, name string, err error) {
	given := 0
	if a.Signal != nil {
		given++
		sig, parseErr := signal.Parse(a.Signal.SignalName)
		if parseErr != nil {
			parseErr = fmt.Errorf("signalName: %w", parseErr)
		}
		err = errors.Join(err, parseErr, a.Signal.Validate())
		finder := process.Finder{Config: a.Signal.Config, FS: host.Processes, Observed: host.Observed}
		step, name = action.Signal{Signaler: signaler{finder, sig}}, "signal "+a.Signal.SignalName
	}
	if a.Request != nil {
		given++
		call, callErr := a.Request.call()
		err = errors.Join(err, callErr)
		step, name = call, "request "+call.Method+" "+hostOf(call.URL)
	}
	if len(a.Exec) > 0 {
		given++
		step, name = action.Command{Execer: execer{}, Command: a.Exec}, "exec "+a.Exec[0]
	}
	if a.Touch != "" {
		given++
		step, name = action.Touch{Name: a.Touch}, "touch "+a.Touch
	}
	if given != 1 {
		err = errors.Join(err, fmt.Errorf("want exactly one of signal, request, exec and touch, %d are given", given))
	}
	return step, name, err
}

func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }
