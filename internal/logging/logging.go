// Package logging creates the logger of a program from its command line flags, in the same way for every program.
package logging

import (
	"fmt"
	"io"
	"log/slog"

	"github.com/spf13/pflag"
)

// Options are the values of the flags.
type Options struct {
	Format string // text or json
	Level  slog.Level
}

// AddFlags adds --log-format and --log-level.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Format, "log-format", "text", "text or json")
	flags.TextVar(&o.Level, "log-level", slog.LevelInfo, "debug, info, warn or error")
}

// New returns the program's logger.
func (o *Options) New(out io.Writer) (*slog.Logger, error) { return o.logger(out, o.Level) }

// Libraries returns the logger for libraries that log through klog. Their debug lines are left out at every level.
func (o *Options) Libraries(out io.Writer) (*slog.Logger, error) {
	return o.logger(out, max(o.Level, slog.LevelInfo))
}

func (o *Options) logger(out io.Writer, level slog.Level) (*slog.Logger, error) {
	options := &slog.HandlerOptions{Level: level, ReplaceAttr: bounded}
	switch o.Format {
	case "text":
		return slog.New(slog.NewTextHandler(out, options)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(out, options)), nil
	default:
		return nil, fmt.Errorf("--log-format %q: want text or json", o.Format)
	}
}
