package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	roleEnv = "REFIT_BENCH_ROLE"
	roleApp = "app"
)

// beApp is the program that is updated: at each SIGHUP it opens the file and says by which stamp it begins.
func beApp(file string) {
	hup := make(chan os.Signal, 1)
	notify(hup)
	fmt.Println("ready")
	head := make([]byte, stampLength)
	for range hup {
		f, err := os.Open(file)
		if err == nil {
			_, err = io.ReadFull(f, head)
			_ = f.Close()
		}
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(string(head))
	}
}

// app is a running beApp.
type app struct {
	title   string
	process *os.Process
	lines   *bufio.Scanner
}

func startApp(ctx context.Context, title, file string) (*app, error) {
	cmd := exec.CommandContext(ctx, "/proc/self/exe")
	cmd.Args = []string{title, file}
	cmd.Env = append(os.Environ(), roleEnv+"="+roleApp)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	a := &app{title: title, process: cmd.Process, lines: bufio.NewScanner(out)}
	return a, a.hear("ready")
}

// hear waits until the handler has run, and checks what it has seen.
func (a *app) hear(want string) error {
	if !a.lines.Scan() {
		return fmt.Errorf("%s has ended: %w", a.title, a.lines.Err())
	}
	if got := a.lines.Text(); got != want {
		return fmt.Errorf("%s saw %q, want %q", a.title, got, want)
	}
	return nil
}

// contender brings a file to its app.
type contender struct {
	name string
	file string // as the app sees it
	app  *app
	// bring starts an update; the function waits for its end.
	bring func(context.Context, offered) (func() error, error)
	// sidecar is nil for the floors.
	sidecar *exec.Cmd
}

// took is how long one update lasted until the handler had run, and until the caller knew.
type took struct{ seen, answered time.Duration }

func (c *contender) update(ctx context.Context, what offered) (took, error) {
	began := time.Now()
	answer, err := c.bring(ctx, what)
	if err != nil {
		return took{}, err
	}
	heard := make(chan error, 1)
	var seen time.Duration
	go func() {
		err := c.app.hear(what.stamp)
		seen = time.Since(began)
		heard <- err
	}()
	if err := answer(); err != nil {
		return took{}, err // the app's goroutine ends with the app
	}
	answered := time.Since(began)
	if err := <-heard; err != nil {
		return took{}, err
	}
	return took{seen, answered}, nil
}

func (c *contender) close() error {
	var err error
	if c.sidecar != nil {
		err = errors.Join(c.sidecar.Process.Signal(os.Interrupt), c.sidecar.Wait())
	}
	return errors.Join(err, c.app.process.Kill())
}

// contenders are refit-sidecar first, and the floors.
func contenders(ctx context.Context, program, dir string) ([]*contender, error) {
	var all []*contender
	for _, name := range []string{"refit-sidecar", "curl, mv, kill", "curl, sync, mv, kill"} {
		place := filepath.Join(dir, strconv.Itoa(len(all)))
		if err := os.Mkdir(place, 0o755); err != nil {
			return all, err
		}
		c := &contender{name: name, file: filepath.Join(place, "data")}
		title := fmt.Sprintf("refit-bench-%d-%d", os.Getpid(), len(all))
		var err error
		if c.app, err = startApp(ctx, title, c.file); err != nil {
			return all, err
		}
		all = append(all, c)
	}
	all[1].bring = all[1].shell(`curl -fsS -o "$1.tmp" "$2" && mv "$1.tmp" "$1" && kill -HUP "$3"`)
	all[2].bring = all[2].shell(`curl -fsS -o "$1.tmp" "$2" && sync "$1.tmp" && mv "$1.tmp" "$1" && sync "${1%/*}" && kill -HUP "$3"`)
	return all, all[0].startSidecar(ctx, program)
}

func (c *contender) shell(script string) func(context.Context, offered) (func() error, error) {
	return func(ctx context.Context, what offered) (func() error, error) {
		cmd := exec.CommandContext(ctx, "sh", "-c", script, "sh", c.file, what.url, strconv.Itoa(c.app.process.Pid))
		cmd.Stderr = os.Stderr
		return cmd.Wait, cmd.Start()
	}
}

const sidecarConfig = `server: {address: '%s'}
health: 'off'
plugins:
- name: hot_update
  config:
    fileDir: '%s'
    loadPatchType: signal
    signal: {processName: '%s', signalName: SIGHUP}
    fetch: {allowNetworks: [127.0.0.0/8]}
    keepRevisions: 2
    restore: {configMap: 'off'}
`

// startSidecar starts refit-sidecar as it would run in a pod, without an API server.
func (c *contender) startSidecar(ctx context.Context, program string) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		return err
	}
	place := filepath.Dir(c.file)
	text := fmt.Sprintf(sidecarConfig, address, place, c.app.title)
	config := place + ".yaml"
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		return err
	}
	var said bytes.Buffer
	cmd := exec.CommandContext(context.WithoutCancel(ctx), program, "--config", config, "--log-level=error")
	cmd.Env = []string{"POD_NAME=bench", "POD_NAMESPACE=bench"}
	cmd.Stderr = &said
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return err
	}
	c.sidecar = cmd
	base := "http://" + address
	if err := awaitReady(ctx, base); err != nil {
		return fmt.Errorf("%w: %s", err, said.String())
	}
	round := 0
	c.bring = func(ctx context.Context, what offered) (func() error, error) {
		round++
		form := url.Values{"version": {fmt.Sprintf("v%d", round)}, "url": {what.url}, "name": {"data"}}
		return func() error { return post(ctx, base+"/hot-update", form) }, nil
	}
	return nil
}

func awaitReady(ctx context.Context, base string) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for ready := false; !ready; {
		select {
		case <-ctx.Done():
			return errors.New("refit-sidecar is not ready")
		case <-ticker.C:
		}
		said, err := get(ctx, base+"/status")
		ready = err == nil && strings.Contains(said, `"ready": true`)
	}
	// What only its start needs, it gives back a few seconds later.
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(6 * time.Second):
		return nil
	}
}

func get(ctx context.Context, address string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return "", err
	}
	return send(request)
}

func post(ctx context.Context, address string, form url.Values) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(form.Encode()))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	_, err = send(request)
	return err
}

func send(request *http.Request) (string, error) {
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	said, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %d %s", request.URL.Path, answer.StatusCode, said)
	}
	return string(said), err
}
