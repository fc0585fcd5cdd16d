package probe

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/tidwall/gjson"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/util/jsonpath"

	"github.com/refit-project/refit/internal/foreign"
)

const (
	// MaxMessage limits a message, in bytes. Longer messages are not useful in a condition.
	MaxMessage = 1024
	// maxBody is how much of a response is read, like in kubelet's prober.
	maxBody = 10 << 10
)

// cleanMessage converts untrusted text to a message: valid UTF-8 without surrounding white space and characters that YAML does not allow
// or that change what a terminal shows, cut between characters.
func cleanMessage(s string) string {
	return foreign.Cut(strings.TrimSpace(foreign.PrintableLines(s)), MaxMessage)
}

// errPath says that the path is not a JSON path.
var errPath = errors.New("JSON path")

// CheckJSONPath returns an error if a path cannot be used with a prober that reads JSON.
//
// A path with braces, or one that begins with $, is a JSONPath template like in kubectl, "{.players[0].name}". Any
// other path is in the syntax of GJSON, like in the reference implementation of the KEP: "players.0.name", "players.#",
// "players.#(id==2).name".
func CheckJSONPath(path string) error {
	switch {
	case path == "":
		return fmt.Errorf("%w: empty", errPath)
	case isTemplate(path):
		_, err := parseTemplate(path)
		return err
	}
	return nil
}

func isTemplate(path string) bool { return strings.HasPrefix(path, "$") || strings.Contains(path, "{") }

func parseTemplate(path string) (*jsonpath.JSONPath, error) {
	template := path
	if !strings.Contains(path, "{") {
		template = "{" + path + "}"
	}
	j := jsonpath.New("result").AllowMissingKeys(false)
	if err := j.Parse(template); err != nil {
		return nil, fmt.Errorf("%w %q: %w", errPath, path, err)
	}
	return j, nil
}

// extract returns the value at path in a JSON document: a string unquoted, everything else as JSON, and several values
// separated by spaces.
func extract(document []byte, path string) (string, error) {
	if len(document) >= maxBody {
		return "", fmt.Errorf("document longer than %d bytes", maxBody)
	}
	if !json.Valid(document) {
		return "", errors.New("not JSON")
	}
	if !isTemplate(path) {
		found := gjson.GetBytes(document, strings.TrimPrefix(path, "."))
		if !found.Exists() {
			return "", fmt.Errorf("%w %s: nothing there", errPath, path)
		}
		if found.Type == gjson.String {
			return found.String(), nil
		}
		return found.Raw, nil
	}
	return extractTemplate(document, path)
}

func extractTemplate(document []byte, path string) (string, error) {
	// Keep integers, which encoding/json would convert to floats.
	var value any
	if err := utiljson.Unmarshal(document, &value); err != nil {
		return "", fmt.Errorf("not JSON: %w", err)
	}
	j, err := parseTemplate(path)
	if err != nil {
		return "", err
	}
	found, err := j.FindResults(value)
	if err != nil {
		return "", fmt.Errorf("%w %s: %w", errPath, path, err)
	}
	var words []string
	for _, group := range found {
		for _, v := range group {
			word, err := asText(v.Interface())
			if err != nil {
				return "", err
			}
			words = append(words, word)
		}
	}
	if len(words) == 0 {
		return "", fmt.Errorf("%w %s: nothing there", errPath, path)
	}
	return strings.Join(words, " "), nil
}

func asText(v any) (string, error) {
	if s, ok := v.(string); ok {
		return s, nil
	}
	b, err := json.Marshal(v)
	return string(b), err
}

// result returns the outcome of a successful probe: the text, or the value at path in it.
func result(body []byte, path string) Outcome {
	if path == "" {
		return Outcome{Succeeded, cleanMessage(string(body))}
	}
	s, err := extract(body, path)
	if err != nil {
		return Outcome{Unknown, cleanMessage(err.Error())}
	}
	return Outcome{Succeeded, cleanMessage(s)}
}

func failed(format string, args ...any) Outcome {
	return Outcome{Failed, cleanMessage(fmt.Sprintf(format, args...))}
}

func unknown(err error) Outcome {
	return Outcome{Unknown, cleanMessage(err.Error())}
}
