package records

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
)

// Tail reads the lines that are added to a file.
type Tail struct {
	file   *os.File
	reader *bufio.Reader
	begun  []byte // of a line without an end yet
}

// OpenTail opens the file name at the offset from.
func OpenTail(name string, from int64) (*Tail, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("follow: %w", err)
	}
	if _, err := file.Seek(from, io.SeekStart); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("follow: %w", err)
	}
	return &Tail{file: file, reader: bufio.NewReaderSize(file, 1<<20)}, nil
}

// Next is the next whole line, or nil when there is none now.
func (t *Tail) Next() ([]byte, error) {
	part, err := t.reader.ReadBytes('\n')
	t.begun = append(t.begun, part...)
	if errors.Is(err, io.EOF) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("follow: %w", err)
	}
	line := bytes.Clone(t.begun)
	t.begun = t.begun[:0]
	return line, nil
}

// Close closes the file.
func (t *Tail) Close() { _ = t.file.Close() }
