package main

import (
	"archive/tar"
	"bytes"
)

// tarHeader is the header of an archive's only file.
func tarHeader(size int) []byte {
	var buffer bytes.Buffer
	writer := tar.NewWriter(&buffer)
	if err := writer.WriteHeader(&tar.Header{Name: "content", Mode: 0o644, Size: int64(size)}); err != nil {
		panic(err) // a buffer takes it
	}
	return buffer.Bytes()
}
