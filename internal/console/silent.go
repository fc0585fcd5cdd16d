package console

import "time"

// silence is how long an object has no status before that is printed.
const silence = 5 * time.Second

// Silent prints once that an object has had no status for some seconds. The feature of refit-manager that processes its kind may be
// turned off, and users may not be allowed to read that.
type Silent struct {
	Output  *Output
	Kind    string // in the plural
	Feature string // its name in manager.features of the chart
	since   time.Time
	said    bool
	away    bool // the API server does not answer
}

// See is called at least every second, with whether refit-manager has seen the present version of the object.
func (s *Silent) See(processed bool) {
	switch {
	case processed:
		s.since = time.Time{}
	case s.since.IsZero():
		s.since = time.Now()
	case !s.said && time.Since(s.since) >= silence:
		s.said = true
		s.Output.Say("no status for %.0f s: refit-manager is not running, or busy, or does not process %s (manager.features.%s of the chart); see kubectl refit doctor",
			silence.Seconds(), s.Kind, s.Feature)
	}
}

// Tick is called every second of a wait: with whether refit-manager has seen the present version of the object, and with the error of a
// call that is tried again because the API server cannot be reached. It prints that once, and updates the line of the wait.
func (s *Silent) Tick(processed bool, err error) {
	switch {
	case err == nil:
		s.away = false
		s.See(processed)
	case !s.away:
		s.away, s.since = true, time.Time{} // refit-manager is not silent, it cannot be seen
		s.Output.Say("trying again until the API server can be reached: %s", err)
	}
	s.Output.Tick()
}
