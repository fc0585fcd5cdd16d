// Package wording has rules for the words of messages that Refit writes for people. What a message says does not belong here.
package wording

import "fmt"

// Count returns a number with a noun, or with a noun and a verb: Count(n, "pod is", "pods are").
func Count[N int | int32 | int64](n N, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}
