package console

import (
	"slices"
	"strings"
)

// KindName reads KIND/NAME, and returns the kind in lower case. It returns false for any other text.
func KindName(text string) (kind, name string, ok bool) {
	kind, name, ok = strings.Cut(text, "/")
	return strings.ToLower(kind), name, ok && name != "" && !strings.Contains(name, "/")
}

// IsPod reports whether a kind in lower case is a name that kubectl accepts for pods.
func IsPod(kind string) bool { return slices.Contains([]string{"pod", "pods", "po"}, kind) }
