package verdict

import (
	"regexp"
	"strings"

	"github.com/refit-project/refit/internal/foreign"
)

const (
	// maxMessages are the lines that are kept of a test: the first ones, as the last ones are what it saw while it cleaned up.
	maxMessages = 8
	// maxMessage is the length of a line in bytes.
	maxMessage = 400
)

// logged is how the package testing writes the first line of a message.
var logged = regexp.MustCompile(`^ +\w+\.go:\d+: `)

// messages are the first lines that tests have logged, by the name of the test.
type messages map[string][]string

func (m messages) add(test, line string) {
	if len(m[test]) >= maxMessages || !logged.MatchString(line) {
		return
	}
	m[test] = append(m[test], foreign.Shorten(strings.TrimSpace(line), maxMessage))
}

// of keeps what those tests have logged, nil if that is nothing.
func (m messages) of(tests []string) map[string][]string {
	var kept map[string][]string
	for _, test := range tests {
		if len(m[test]) == 0 {
			continue
		}
		if kept == nil {
			kept = map[string][]string{}
		}
		kept[test] = m[test]
	}
	return kept
}
