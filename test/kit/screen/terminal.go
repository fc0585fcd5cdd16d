// Package screen shows what a program has left on a terminal: a pseudo-terminal of a given size, which understands what programs of this
// repository write. Decisions about what is right must stay out.
package screen

import (
	"os"
	"testing"

	"github.com/creack/pty"
)

// Terminal is a pseudo-terminal whose other end is read.
type Terminal struct {
	// File is what a program writes to. It knows its size.
	File *os.File

	tb   testing.TB
	read chan *Screen
}

// Open opens a terminal of a number of columns and lines, until Close is called or the test ends.
func Open(tb testing.TB, columns, lines int) *Terminal {
	tb.Helper()
	master, file, err := pty.Open()
	if err != nil {
		tb.Fatal(err)
	}
	if err := pty.Setsize(file, &pty.Winsize{Rows: uint16(lines), Cols: uint16(columns)}); err != nil {
		tb.Fatal(err)
	}
	terminal := &Terminal{File: file, tb: tb, read: make(chan *Screen, 1)}
	go func() {
		shown := New(columns, lines)
		for buffer := make([]byte, 4096); ; {
			n, err := master.Read(buffer)
			shown.WriteString(string(buffer[:n]))
			if err != nil { // EIO when File is closed
				terminal.read <- shown
				return
			}
		}
	}()
	tb.Cleanup(func() {
		_ = file.Close() // again, if the test has
		_ = master.Close()
	})
	return terminal
}

// Close closes the terminal and returns what is on it.
func (t *Terminal) Close() *Screen {
	t.tb.Helper()
	if err := t.File.Close(); err != nil {
		t.tb.Fatal(err)
	}
	return <-t.read
}
