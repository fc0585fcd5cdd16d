// Command program makes garbage and releases it. It prints, in KiB, anonymous memory before and after, and how much less
// of the program itself is resident after.
package main

import (
	"fmt"
	"os"
	"runtime/debug"

	"github.com/prometheus/procfs"

	"github.com/refit-project/refit/memory"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	debug.SetGCPercent(-1)
	for range 32 {
		touch(make([]byte, 1<<20))
	}
	before, err := resident()
	if err != nil {
		return err
	}
	if err := memory.Release(); err != nil {
		return err
	}
	after, err := resident()
	if err != nil {
		return err
	}
	fmt.Println(before.RssAnon>>10, after.RssAnon>>10, (int64(before.RssFile)-int64(after.RssFile))>>10)
	return nil
}

func resident() (procfs.ProcStatus, error) {
	self, err := procfs.Self()
	if err != nil {
		return procfs.ProcStatus{}, err
	}
	return self.NewStatus()
}

//go:noinline
func touch(block []byte) {
	for i := range block {
		block[i] = 1
	}
}
