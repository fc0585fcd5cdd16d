package logging_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/pflag"

	"github.com/refit-project/refit/internal/logging"
)

func TestFlags(t *testing.T) {
	t.Parallel()
	log := func(l *slog.Logger) { l.Debug("d"); l.Info("i"); l.Warn("w") }
	for name, tt := range map[string]struct {
		flags              []string
		program, libraries int // lines
		want               string
	}{
		"default":              {nil, 2, 2, "level=INFO msg=i"},
		"debug of the program": {[]string{"--log-level=debug"}, 3, 2, "level=DEBUG msg=d"},
		"warn":                 {[]string{"--log-level=warn"}, 1, 1, "msg=w"},
		"json":                 {[]string{"--log-format=json"}, 2, 2, `"msg":"i"`},
	} {
		var options logging.Options
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		options.AddFlags(flags)
		if err := flags.Parse(tt.flags); err != nil {
			t.Fatal(err)
		}
		var out, libraries bytes.Buffer
		for _, to := range []struct {
			out  *bytes.Buffer
			make func() (*slog.Logger, error)
		}{{&out, func() (*slog.Logger, error) { return options.New(&out) }}, {&libraries, func() (*slog.Logger, error) { return options.Libraries(&libraries) }}} {
			logger, err := to.make()
			if err != nil {
				t.Fatal(err)
			}
			log(logger)
		}
		if a, b := strings.Count(out.String(), "\n"), strings.Count(libraries.String(), "\n"); a != tt.program || b != tt.libraries || !strings.Contains(out.String(), tt.want) {
			t.Errorf("%s: %d and %d lines, want %d and %d:\n%s", name, a, b, tt.program, tt.libraries, &out)
		}
	}
}

func TestUnknownFormat(t *testing.T) {
	t.Parallel()
	options := logging.Options{Format: "xml"}
	if _, err := options.New(&bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), "--log-format") {
		t.Errorf("%v", err)
	}
}

func TestTextOfOthersIsBoundedInALine(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 100_000)
	for _, format := range []string{"text", "json"} {
		var out bytes.Buffer
		logger, err := (&logging.Options{Format: format}).New(&out)
		if err != nil {
			t.Fatal(err)
		}
		logger.Info(long, "text", long, "err", fmt.Errorf("refused: %s", long), "list", []string{"a", long}, slog.Group("group", "inner", long), "\xff", "\xff")
		if line := out.String(); len(line) > 5*(2<<10)+200 || !utf8.ValidString(line) || !strings.Contains(line, "refused: éé") || strings.Count(line, "é…") != 5 {
			t.Errorf("%s: a line of %d bytes: %.300s", format, len(line), line)
		}
	}
}
