// Command terminal records commands of kubectl refit in a terminal, on the test cluster or on one of the user's, writes the recording as
// docs/images/terminal.cast and draws it as docs/images/terminal.svg.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/refit-project/refit/hack/demokit"
	"github.com/refit-project/refit/hack/terminal/cast"
	"github.com/refit-project/refit/hack/terminal/film"
)

func main() {
	out := flag.String("out", filepath.Join("docs", "images", "terminal"), "`file` to write, without its extension")
	redraw := flag.Bool("redraw", false, "draw the recording that exists, without a cluster")
	flag.Parse()
	if *redraw {
		if err := again(*out); err != nil {
			fmt.Fprintln(os.Stderr, "terminal:", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(demokit.Program{Name: "terminal", Show: func(ctx context.Context, kit *demokit.Demo) error { return run(ctx, kit, *out) }}.Main())
}

func run(ctx context.Context, kit *demokit.Demo, out string) error {
	s, err := newSession(kit)
	if err != nil {
		return err
	}
	if err := kit.Report.Do("Deployment web of three pods", func() error { return s.setUp(ctx) }); err != nil {
		return err
	}
	var recording *cast.Recording
	err = kit.Report.Do("record the terminal", func() (err error) {
		recording, err = s.record(ctx)
		return err
	})
	if err != nil {
		return err
	}
	if err := write(kit.Out, out+".cast", recording.Write); err != nil {
		return err
	}
	return draw(kit.Out, out, recording)
}

// again draws a recording that exists.
func again(out string) error {
	text, err := os.ReadFile(out + ".cast")
	if err != nil {
		return fmt.Errorf("read the recording: %w", err)
	}
	recording, err := cast.Read(bytes.NewReader(text))
	if err != nil {
		return err
	}
	return draw(os.Stdout, out, recording)
}

func draw(report io.Writer, out string, recording *cast.Recording) error {
	return write(report, out+".svg", func(to io.Writer) error { return film.Draw(to, recording) })
}

// write writes a file, if there is no error before, and reports its size.
func write(report io.Writer, name string, content func(io.Writer) error) error {
	var all bytes.Buffer
	if err := content(&all); err != nil {
		return err
	}
	if err := os.WriteFile(name, all.Bytes(), 0o644); err != nil {
		return fmt.Errorf("write the recording: %w", err)
	}
	fmt.Fprintf(report, "%s: %d bytes\n", name, all.Len())
	return nil
}
