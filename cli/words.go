package cli

import "fmt"

// Count writes a number of things: 1 pod, 2 pods.
func Count[N int | int32 | int64](n N, thing string) string {
	if n == 1 {
		return fmt.Sprintf("%d %s", n, thing)
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
