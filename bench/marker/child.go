package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/procfs"
)

// child is a program that runs as long as the benchmark.
type child struct {
	command *exec.Cmd
	log     *os.File
	ended   chan struct{} // closed when it has ended
}

func start(ctx context.Context, program string, args ...string) (*child, error) {
	log, err := os.CreateTemp("", filepath.Base(program)+"-*.log")
	if err != nil {
		return nil, err
	}
	c := &child{command: exec.CommandContext(ctx, program, args...), log: log, ended: make(chan struct{})}
	c.command.Stdout, c.command.Stderr = log, log
	c.command.Cancel = func() error { return c.command.Process.Signal(syscall.SIGTERM) }
	c.command.WaitDelay = 10 * time.Second
	if err := c.command.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", filepath.Base(program), err)
	}
	go func() {
		_ = c.command.Wait() // its log says why
		close(c.ended)
	}()
	return c, nil
}

// stop ends it and takes its log away.
func (c *child) stop() {
	if c.command.Process.Signal(syscall.SIGTERM) == nil {
		select {
		case <-c.ended:
		case <-time.After(10 * time.Second):
			_ = c.command.Process.Kill()
			<-c.ended
		}
	}
	_ = c.log.Close()
	_ = os.Remove(c.log.Name())
}

// alive returns an error when it has ended.
func (c *child) alive() error {
	select {
	case <-c.ended:
		return fmt.Errorf("%s has ended: %w", filepath.Base(c.command.Path), c.tail())
	default:
		return nil
	}
}

// tail is the end of its log, as an error.
func (c *child) tail() error {
	content, err := os.ReadFile(c.log.Name())
	if err != nil {
		return err
	}
	lines := bytes.Split(bytes.TrimSpace(content), []byte("\n"))
	return errors.New(string(bytes.Join(lines[max(0, len(lines)-20):], []byte("\n"))))
}

// manager is refit-manager as a child: alone, so that what it costs is all its own.
type manager struct {
	*child
	metrics, health string // URLs
}

func startManager(ctx context.Context, program string) (*manager, error) {
	m := &manager{metrics: "http://127.0.0.1:18080/metrics", health: "http://127.0.0.1:18081/readyz"}
	var err error
	m.child, err = start(ctx, program, "--kubeconfig="+os.Getenv("KUBECONFIG"), "--leader-elect=false", "--namespace="+namespace,
		"--cert-secret="+certificateSecret, "--webhook-port=19443", "--metrics-addr=127.0.0.1:18080", "--health-addr=127.0.0.1:18081")
	if err != nil {
		return nil, err
	}
	err = await(ctx, time.Minute, "refit-manager to be ready", func(ctx context.Context) (bool, error) {
		response, err := get(ctx, m.health)
		if err == nil {
			err = response.Body.Close()
		}
		return err == nil, m.alive()
	})
	if err != nil {
		err = errors.Join(err, m.tail())
		m.stop()
		return nil, err
	}
	return m, nil
}

func get(ctx context.Context, url string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		_ = response.Body.Close()
		return nil, errors.New(response.Status)
	}
	return response, nil
}

// reading of what the manager has done and cost so far.
type reading struct {
	writes, reads int // requests to the API server; watches are reads
	cpu           time.Duration
	rss, peak     uint64
	anonymous     uint64 // RssAnon
}

func (m *manager) read(ctx context.Context) (reading, error) {
	var r reading
	response, err := get(ctx, m.metrics)
	if err != nil {
		return r, fmt.Errorf("read metrics: %w", err)
	}
	defer response.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(response.Body)
	if err != nil {
		return r, fmt.Errorf("read metrics: %w", err)
	}
	for _, metric := range families["rest_client_requests_total"].GetMetric() {
		for _, label := range metric.GetLabel() {
			if label.GetName() != "method" {
				continue
			}
			if label.GetValue() == http.MethodGet {
				r.reads += int(metric.GetCounter().GetValue())
			} else {
				r.writes += int(metric.GetCounter().GetValue())
			}
		}
	}
	process, err := procfs.NewProc(m.command.Process.Pid)
	if err != nil {
		return r, err
	}
	stat, err := process.Stat()
	if err != nil {
		return r, err
	}
	status, err := process.NewStatus()
	r.cpu, r.rss, r.peak, r.anonymous = time.Duration(stat.CPUTime()*float64(time.Second)), status.VmRSS, status.VmHWM, status.RssAnon
	return r, err
}
