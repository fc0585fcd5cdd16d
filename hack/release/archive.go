package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"time"
)

// entry is a file of an archive.
type entry struct {
	name    string
	mode    int64
	content []byte
}

// archive makes a .tar.gz, in the order of the entries, owned by root and dated at created.
func archive(entries []entry, created time.Time) ([]byte, error) {
	var out bytes.Buffer
	compressed := gzip.NewWriter(&out)
	files := tar.NewWriter(compressed)
	for _, entry := range entries {
		header := &tar.Header{
			Typeflag: tar.TypeReg, Name: entry.name, Mode: entry.mode, Size: int64(len(entry.content)), ModTime: created, Format: tar.FormatUSTAR,
		}
		if err := files.WriteHeader(header); err != nil {
			return nil, fmt.Errorf("archive %s: %w", entry.name, err)
		}
		if _, err := files.Write(entry.content); err != nil {
			return nil, fmt.Errorf("archive %s: %w", entry.name, err)
		}
	}
	if err := files.Close(); err != nil {
		return nil, fmt.Errorf("archive: %w", err)
	}
	if err := compressed.Close(); err != nil {
		return nil, fmt.Errorf("archive: %w", err)
	}
	return out.Bytes(), nil
}
