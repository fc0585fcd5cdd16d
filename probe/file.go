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

// File checks a regular file. Create it with NewFile.
type File struct {
	config  FileConfig
	content *regexp.Regexp
}

// FileConfig says which file to check, and when the check succeeds.
type FileConfig struct {
	// Dir is a directory and Name the path of the file in it. Links that lead out of Dir are not followed: whoever can
	// write there must not be able to expose another file of this program as the result.
	Dir, Name string
	// MaxAge is the maximum time since the last write of the file; 0 means no limit.
	MaxAge time.Duration
	// Content is a regular expression (RE2) that must match in the first 10 KiB; empty means any content.
	Content string
	// JSONPath extracts the result from the content, see CheckJSONPath; without it the content is the result.
	JSONPath string
}

// NewFile returns a File, or all errors in config at once.
func NewFile(config FileConfig) (*File, error) {
	var errs []error
	if config.Dir == "" || config.Name == "" {
		errs = append(errs, errors.New("folder and name are needed"))
	}
	if config.MaxAge < 0 {
		errs = append(errs, fmt.Errorf("age %s: negative", config.MaxAge))
	}
	re, err := regexp.Compile(config.Content)
	errs = append(errs, err)
	if config.JSONPath != "" {
		errs = append(errs, CheckJSONPath(config.JSONPath))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("file probe: %w", err)
	}
	return &File{config: config, content: re}, nil
}

// Probe implements Prober. A missing, old or wrong file is a failure; if the file cannot be read, the state is Unknown.
func (f *File) Probe(context.Context) Outcome {
	root, err := os.OpenRoot(f.config.Dir)
	if err != nil {
		return fileError(err)
	}
	defer func() { _ = root.Close() }()
	// Without O_NONBLOCK opening a FIFO would wait for its writer.
	file, err := root.OpenFile(f.config.Name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return fileError(err)
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	switch {
	case err != nil:
		return fileError(err)
	case !info.Mode().IsRegular():
		return failed("%s: not a regular file", f.config.Name)
	}
	if age := time.Since(info.ModTime()); f.config.MaxAge > 0 && age > f.config.MaxAge {
		return failed("%s: written %s ago, more than %s", f.config.Name, age.Round(time.Second), f.config.MaxAge)
	}
	b, err := io.ReadAll(io.LimitReader(file, maxBody))
	if err != nil {
		return fileError(err)
	}
	if !f.content.Match(b) {
		return failed("%s: content does not match", f.config.Name)
	}
	return result(b, f.config.JSONPath)
}

func fileError(err error) Outcome {
	if errors.Is(err, fs.ErrNotExist) {
		return failed("%v", err)
	}
	return unknown(err)
}
