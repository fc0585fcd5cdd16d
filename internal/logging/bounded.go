package logging

import (
	"fmt"
	"log/slog"

	"github.com/refit-project/refit/internal/foreign"
)

// maxText bounds the message and each value of a line in bytes. Errors and values contain text of others, such as
// annotations, responses of registries and titles of processes, which is bounded here at the latest.
const maxText = 2 << 10

// bounded cuts a value that is too long.
func bounded(_ []string, a slog.Attr) slog.Attr {
	switch a.Value.Kind() {
	case slog.KindString:
		a.Value = slog.StringValue(foreign.Shorten(a.Value.String(), maxText))
	case slog.KindAny:
		switch value := a.Value.Any().(type) {
		case *slog.Source:
		case error:
			a.Value = slog.StringValue(foreign.Shorten(value.Error(), maxText))
		default:
			if text := fmt.Sprint(value); len(text) > maxText {
				a.Value = slog.StringValue(foreign.Shorten(text, maxText))
			}
		}
	}
	a.Key = foreign.Shorten(a.Key, maxText)
	return a
}
