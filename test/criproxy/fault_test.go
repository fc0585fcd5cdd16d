package criproxy_test

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/refit-project/refit/cri"
	"github.com/refit-project/refit/internal/identity"
	"github.com/refit-project/refit/test/criproxy"
)

func TestFaults(t *testing.T) {
	t.Parallel()
	s := start(t)
	list := func() error {
		_, err := s.client.ListContainers(t.Context(), "uid-0")
		return err
	}
	running := func() bool {
		got, err := s.client.ContainerStatus(t.Context(), s.id)
		return err == nil && got.State == identity.StateRunning
	}

	s.faults(t, `{"ListContainers": {"code": "unavailable", "message": "told to", "count": 2}}`)
	for call, want := range []error{cri.ErrUnavailable, cri.ErrUnavailable, nil} {
		if err := list(); !errors.Is(err, want) {
			t.Errorf("list %d = %v, want %v", call, err, want)
		}
	}
	s.faults(t, `{"ListContainers": {"hang": true}}`)
	if err := list(); !errors.Is(err, cri.ErrDeadline) {
		t.Errorf("list = %v, want ErrDeadline", err)
	}
	s.faults(t, `{"ListContainers": {"delay": "100ms"}}`)
	begin := time.Now()
	if err := list(); err != nil || time.Since(begin) < 100*time.Millisecond {
		t.Errorf("list = %v after %s, want success and the delay", err, time.Since(begin))
	}
	s.faults(t, `{"ListContainers": {"code": "Internal", "probability": 0}}`)
	if err := list(); err != nil {
		t.Errorf("list = %v, want no call struck", err)
	}
	s.faults(t, `{"StopContainer": {"code": "Unavailable", "count": 1}}`)
	if err := s.client.StopContainer(t.Context(), s.id, 0); !errors.Is(err, cri.ErrUnavailable) || !running() {
		t.Errorf("refused stop = %v, running: %v; want it not to reach the runtime", err, running())
	}
	s.faults(t, `{"StopContainer": {"code": "Unavailable", "after": true, "count": 1}}`)
	if err := s.client.StopContainer(t.Context(), s.id, 0); !errors.Is(err, cri.ErrUnavailable) || running() {
		t.Errorf("stop with a lost answer = %v, running: %v; want it to reach the runtime", err, running())
	}
	s.faults(t, `{"*": {"code": "Internal"}, "ListContainers": {}}`)
	if _, err := s.client.Version(t.Context()); err == nil {
		t.Error("* does not strike Version")
	}
	s.faults(t, `{"ListContainers": {"cod`) // half written: as before
	if err := list(); err != nil {
		t.Errorf("list = %v, want its own entry to win over *", err)
	}
	if _, err := s.client.Version(t.Context()); err == nil {
		t.Error("a file that cannot be read clears the faults")
	}
	if err := os.Remove(s.config.Faults); err != nil {
		t.Fatal(err)
	}
	if _, err := s.client.Version(t.Context()); err != nil {
		t.Errorf("Version = %v, want the faults gone with their file", err)
	}
}

func TestParseFaults(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		in   string
		good bool
	}{
		"empty object":  {in: `{}`, good: true},
		"all":           {in: `{"A": {"delay":"1s","hang":true,"code":"DeadlineExceeded","message":"m","after":true,"drop":true,"probability":0.5,"count":0}}`, good: true},
		"nothing":       {in: ``},
		"misspelt":      {in: `{"A": {"dealy": "1s"}}`},
		"code":          {in: `{"A": {"code": "Unavailabel"}}`},
		"delay":         {in: `{"A": {"delay": "-1s"}}`},
		"delay number":  {in: `{"A": {"delay": 1}}`},
		"probability":   {in: `{"A": {"probability": 1.5}}`},
		"count":         {in: `{"A": {"count": -1}}`},
		"two values":    {in: `{} {}`},
		"not an object": {in: `[]`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := criproxy.ParseFaults([]byte(tt.in)); (err == nil) != tt.good {
				t.Errorf("ParseFaults(%s) = %v, want good: %v", tt.in, err, tt.good)
			}
		})
	}
}

func FuzzParseFaults(f *testing.F) {
	f.Add([]byte(`{"A": {"delay":"1s","code":"OK","probability":0.5,"count":1}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		faults, err := criproxy.ParseFaults(b)
		if err == nil {
			for method, fault := range faults {
				if fault.Delay < 0 || (fault.Probability != nil && !(*fault.Probability >= 0 && *fault.Probability <= 1)) {
					t.Errorf("%s: %+v", method, fault)
				}
			}
		}
	})
}
