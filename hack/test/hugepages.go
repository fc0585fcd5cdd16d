package main

import (
	"fmt"
	"os"
	"strings"
)

// hugePagesSetting is in Documentation/admin-guide/mm/transhuge.rst of Linux.
const hugePagesSetting = "/sys/kernel/mm/transparent_hugepage/enabled"

// withHugePages sets transparent huge pages from "madvise" to "always", and returns a function that sets them back. The programs of
// the cluster start thousands of times during the end-to-end tests, and on a virtual machine whose page faults take 15 us a program in Go starts
// with 30 % less CPU time. Any other setting stays. Without the permission to change it, the tests are slower.
func withHugePages(setting string) (restore func() error) {
	nothing := func() error { return nil }
	before, err := os.ReadFile(setting)
	if err != nil || !strings.Contains(string(before), "[madvise]") || os.WriteFile(setting, []byte("always"), 0) != nil {
		return nothing
	}
	return func() error {
		if err := os.WriteFile(setting, []byte("madvise"), 0); err != nil {
			return fmt.Errorf("set transparent huge pages back: %w", err)
		}
		return nil
	}
}
