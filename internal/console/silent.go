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
