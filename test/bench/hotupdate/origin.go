package main

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
)

// block is the unit of a file: each begins with the file's stamp, so that a mixture of two files shows.
const block = 4096

// origin serves two files of each size, which are offered in turns. Files, so that the kernel sends them and the
// server takes little of the processors that are measured.
type origin struct {
	dir    string
	url    string
	server *http.Server
	turn   int
}

// offered is a file and the stamp by which it is known.
type offered struct{ url, stamp string }

func newOrigin(ctx context.Context, dir string) (*origin, error) {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	o := &origin{dir: dir, url: "http://" + listener.Addr().String() + "/", server: &http.Server{Handler: http.FileServer(http.Dir(dir))}}
	go func() { _ = o.server.Serve(listener) }() // ends with close
	return o, nil
}

func (o *origin) close() { _ = o.server.Close() }

// offer makes the two files of a size.
func (o *origin) offer(size int64) error {
	for turn := range 2 {
		content := bytes.Repeat([]byte("refit"), int(size)/5+1)[:size]
		for at := int64(0); at < size; at += block {
			copy(content[at:], stamp(size, turn))
		}
		if err := os.WriteFile(filepath.Join(o.dir, fileName(size, turn)), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// next is the other file of the size.
func (o *origin) next(size int64) offered {
	o.turn++
	turn := o.turn % 2
	return offered{o.url + fileName(size, turn), stamp(size, turn)}
}

func fileName(size int64, turn int) string { return fmt.Sprintf("%d-%d", size, turn) }

const stampLength = 32

func stamp(size int64, turn int) string {
	return hex.EncodeToString([]byte(fmt.Sprintf("%014d-%d", size, turn)))[:stampLength]
}

// readWhole reads a file to its end and reports whether it is one file of this size.
func readWhole(name string, size int64) (bool, error) {
	f, err := os.Open(name)
	if err != nil {
		return false, err
	}
	defer func() { _ = f.Close() }()
	b := make([]byte, block)
	var seen string
	var total int64
	for {
		n, err := f.ReadAt(b, total)
		if n >= stampLength {
			now := string(b[:stampLength])
			if seen != "" && now != seen {
				return false, nil
			}
			seen = now
		}
		total += int64(n)
		if err != nil { // io.EOF, or it is not whole
			return total == size && strings.HasPrefix(seen, stamp(size, 0)[:stampLength-2]), nil
		}
	}
}
