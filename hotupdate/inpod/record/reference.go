package record

import (
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// referenceKey is the key under which the reference implementation stores a pod's versions.
func referenceKey(namespace, name string) string { return namespace + "-" + name }

var referenceVersion = regexp.MustCompile(`^v\d+(?:\.\d+)*$`)

// parseReference reads the reference implementation's record of one pod, "hot_update: {v1: URL}", and returns the highest
// version, because the record does not contain the order of acceptance. The implementation's placeholder is not a version.
func parseReference(text string) (Revision, bool) {
	if len(text) > 1<<20 {
		return Revision{}, false
	}
	var plugins map[string]map[string]string
	if err := yaml.Unmarshal([]byte(text), &plugins); err != nil {
		return Revision{}, false
	}
	best := ""
	for version := range plugins["hot_update"] {
		if referenceVersion.MatchString(version) && (best == "" || compareVersions(version, best) > 0) {
			best = version
		}
	}
	if best == "" {
		return Revision{}, false
	}
	return Revision{Version: best, Sources: []origin{{URL: plugins["hot_update"][best]}}}, true
}

// compareVersions compares versions number by number, with any count of numbers. It compares equal ones as text, so that
// the result is always the same.
func compareVersions(a, b string) int {
	as, bs := strings.Split(strings.TrimPrefix(a, "v"), "."), strings.Split(strings.TrimPrefix(b, "v"), ".")
	for i := range max(len(as), len(bs)) {
		if c := compareNumbers(part(as, i), part(bs, i)); c != 0 {
			return c
		}
	}
	return strings.Compare(a, b)
}

func part(parts []string, i int) string {
	if i < len(parts) {
		return strings.TrimLeft(parts[i], "0")
	}
	return ""
}

func compareNumbers(a, b string) int {
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}
