package store

import (
	"syscall"
	"testing"
)

// Between fork and exec a child has copies of all open files, including the lock.
func TestAClosedStoreIsUnlockedWhateverIsBeingStarted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first, err := Open(dir, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	if second, err := Open(dir, func(string) {}); err == nil {
		second.Close()
		t.Error("opened twice")
	}
	inChild, err := syscall.Dup(int(first.lock.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(inChild) //nolint:errcheck // only held
	first.Close()
	again, err := Open(dir, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	again.Close()
}
