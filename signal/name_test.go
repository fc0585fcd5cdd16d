package signal_test

import (
	"syscall"
	"testing"

	"github.com/refit-project/refit/signal"
)

func TestParse(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		in   string
		want syscall.Signal // 0: an error is wanted
	}{
		"name":                 {"HUP", syscall.SIGHUP},
		"full name":            {"SIGHUP", syscall.SIGHUP},
		"lower case":           {"sigusr1", syscall.SIGUSR1},
		"number":               {"15", syscall.SIGTERM},
		"first real-time":      {"RTMIN", 34},
		"real-time upwards":    {"SIGRTMIN+3", 37},
		"real-time downwards":  {"RTMAX-14", 50},
		"beyond real-time":     {"RTMIN+31", 0},
		"below real-time":      {"RTMIN-1", 0},
		"two signs":            {"RTMIN+-1", 0},
		"zero sends nothing":   {"0", 0},
		"negative":             {"-9", 0},
		"beyond the last":      {"65", 0},
		"empty":                {"", 0},
		"prefix only":          {"SIG", 0},
		"unknown":              {"HANGUP", 0},
		"name with whitespace": {" HUP", 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := signal.Parse(tt.in)
			if (err != nil) != (tt.want == 0) || got != tt.want {
				t.Errorf("Parse(%q) = %d, %v, want %d", tt.in, got, err, tt.want)
			}
		})
	}
}
