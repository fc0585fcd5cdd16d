// Package procfs makes proc file systems for tests: from a captured tree, or from a description of each
// process. It writes files and knows nothing of who reads them.
package procfs

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

// Extract writes a captured tree, a txtar archive, into a new folder and returns its path. A file whose text
// is "-> target" becomes a symbolic link. In files named cmdline \0 stands for NUL, and the newline that
// txtar needs at the end is dropped.
func Extract(tb testing.TB, archive []byte) string {
	tb.Helper()
	root := tb.TempDir()
	for _, f := range txtar.Parse(archive).Files {
		path := filepath.Join(root, f.Name)
		if target, ok := strings.CutPrefix(string(f.Data), "-> "); ok {
			link(tb, path, strings.TrimSuffix(target, "\n"))
			continue
		}
		if filepath.Base(path) == "cmdline" {
			f.Data = bytes.ReplaceAll(bytes.TrimSuffix(f.Data, []byte("\n")), []byte(`\0`), []byte{0})
		}
		write(tb, path, f.Data)
	}
	return root
}

// Process describes one process of a Tree.
type Process struct {
	PID, PPID int
	Start     uint64 // clock ticks after boot
	UID       int
	Comm      string
	Cmdline   string // as the kernel gives it, arguments ended by NUL
	Cgroup    string // text of the file; "0::/\n" when empty
	Exe       string // no link when empty
	State     byte   // 'S' when zero
	Flags     uint64 // PF_ flags of the kernel
	CPU       uint64 // user time in clock ticks
}

// Tree is a proc file system that a test changes as it goes.
type Tree struct {
	Root string
	tb   testing.TB
}

// NewTree makes an empty one.
func NewTree(tb testing.TB) *Tree {
	tb.Helper()
	return &Tree{Root: tb.TempDir(), tb: tb}
}

// Put adds a process or replaces the one with its PID.
func (t *Tree) Put(p Process) {
	t.tb.Helper()
	dir := filepath.Join(t.Root, strconv.Itoa(p.PID))
	t.Remove(p.PID)
	if p.State == 0 {
		p.State = 'S'
	}
	if p.Cgroup == "" {
		p.Cgroup = "0::/\n"
	}
	write(t.tb, filepath.Join(dir, "stat"), []byte(StatText(p)))
	write(t.tb, filepath.Join(dir, "status"), []byte(StatusText(p)))
	write(t.tb, filepath.Join(dir, "cgroup"), []byte(p.Cgroup))
	write(t.tb, filepath.Join(dir, "cmdline"), []byte(p.Cmdline))
	if p.Exe != "" {
		link(t.tb, filepath.Join(dir, "exe"), p.Exe)
	}
}

// Twin makes pid a process with the very files of of, which costs one link: for trees of thousands.
func (t *Tree) Twin(pid, of int) {
	t.tb.Helper()
	link(t.tb, filepath.Join(t.Root, strconv.Itoa(pid)), strconv.Itoa(of))
}

// Status replaces the text of a process's status file.
func (t *Tree) Status(pid int, text string) {
	t.tb.Helper()
	write(t.tb, filepath.Join(t.Root, strconv.Itoa(pid), "status"), []byte(text))
}

// Stat replaces the stat file of a process, which a reader sees as a whole.
func (t *Tree) Stat(p Process) {
	t.tb.Helper()
	if p.State == 0 {
		p.State = 'S'
	}
	name := filepath.Join(t.Root, strconv.Itoa(p.PID), "stat")
	write(t.tb, name+".new", []byte(StatText(p)))
	if err := os.Rename(name+".new", name); err != nil {
		t.tb.Fatal(err)
	}
}

// Remove ends a process.
func (t *Tree) Remove(pid int) {
	t.tb.Helper()
	if err := os.RemoveAll(filepath.Join(t.Root, strconv.Itoa(pid))); err != nil {
		t.tb.Fatal(err)
	}
}

// Self makes the tree one that shows the reader under pid.
func (t *Tree) Self(pid int) {
	t.tb.Helper()
	link(t.tb, filepath.Join(t.Root, "self"), strconv.Itoa(pid))
}

// StatText is /proc/<pid>/stat as fs/proc/array.c writes it: comm as it is, unescaped.
func StatText(p Process) string {
	return fmt.Sprintf("%d (%s) %c %d %d %d 0 -1 %d 93 0 0 0 %d 0 0 0 20 0 1 0 %d 2564096 203 "+
		"18446744073709551615 1 1 0 0 0 0 0 0 65538 0 0 0 17 1 0 0 0 0 0 0 0 0 0 0 0 0 0\n",
		p.PID, p.Comm, p.State, p.PPID, p.PID, p.PID, p.Flags, p.CPU, p.Start)
}

// StatusText is the part of /proc/<pid>/status that says who the process is; the kernel escapes newlines and
// backslashes of the name here.
func StatusText(p Process) string {
	name := strings.NewReplacer("\\", `\\`, "\n", `\n`).Replace(p.Comm)
	return fmt.Sprintf("Name:\t%s\nUmask:\t0022\nState:\t%c (sleeping)\nTgid:\t%d\nPid:\t%d\nPPid:\t%d\n"+
		"TracerPid:\t0\nUid:\t%d\t%d\t%d\t%d\nGid:\t0\t0\t0\t0\nNSpid:\t%d\nCapEff:\t0000000000000000\n",
		name, p.State, p.PID, p.PID, p.PPID, p.UID, p.UID, p.UID, p.UID, p.PID)
}

func write(tb testing.TB, path string, data []byte) {
	tb.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		tb.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		tb.Fatal(err)
	}
}

func link(tb testing.TB, path, target string) {
	tb.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		tb.Fatal(err)
	}
	if err := os.Symlink(target, path); err != nil {
		tb.Fatal(err)
	}
}
