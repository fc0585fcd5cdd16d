package probe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"syscall"
	"time"
)

// File looks at a regular file. Make it with NewFile.
type File struct {
	config  FileConfig
	content *regexp.Regexp
}

// FileConfig says which file, and when it is well.
type FileConfig struct {
	// Dir is a folder and Name the file's path in it. Links that lead out of Dir are not followed: who can
	// write there shall not choose another file of ours to be shown as the result.
	Dir, Name string
	// MaxAge is how long ago the file may have been written at most; 0 is any time.
	MaxAge time.Duration
	// Content must be found in the first 10 KiB (RE2); empty is any content.
	Content string
	// JSONPath takes the result out of the content, see CheckJSONPath; without it the content is the result.
	JSONPath string
}

// NewFile checks config, reporting all faults at once.
func NewFile(config FileConfig) (*File, error) {
	var faults []error
	if config.Dir == "" || config.Name == "" {
		faults = append(faults, errors.New("folder and name are needed"))
	}
	if config.MaxAge < 0 {
		faults = append(faults, fmt.Errorf("age %s: negative", config.MaxAge))
	}
	re, err := regexp.Compile(config.Content)
	faults = append(faults, err)
	if config.JSONPath != "" {
		faults = append(faults, CheckJSONPath(config.JSONPath))
	}
	if err := errors.Join(faults...); err != nil {
		return nil, fmt.Errorf("file probe: %w", err)
	}
	return &File{config: config, content: re}, nil
}

// Probe implements Prober. A missing, old or wrong file is a failure, one that cannot be read is unknown.
func (f *File) Probe(context.Context) Outcome {
	root, err := os.OpenRoot(f.config.Dir)
	if err != nil {
		return fileFault(err)
	}
	defer func() { _ = root.Close() }()
	// Without O_NONBLOCK opening a FIFO waits for its writer.
	file, err := root.OpenFile(f.config.Name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return fileFault(err)
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	switch {
	case err != nil:
		return fileFault(err)
	case !info.Mode().IsRegular():
		return failed("%s: not a regular file", f.config.Name)
	}
	if age := time.Since(info.ModTime()); f.config.MaxAge > 0 && age > f.config.MaxAge {
		return failed("%s: written %s ago, more than %s", f.config.Name, age.Round(time.Second), f.config.MaxAge)
	}
	b, err := io.ReadAll(io.LimitReader(file, maxBody))
	if err != nil {
		return fileFault(err)
	}
	if !f.content.Match(b) {
		return failed("%s: content does not match", f.config.Name)
	}
	return result(b, f.config.JSONPath)
}

func fileFault(err error) Outcome {
	if errors.Is(err, fs.ErrNotExist) {
		return failed("%v", err)
	}
	return unknown(err)
}
