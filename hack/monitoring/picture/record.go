package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/tsdb"
)

const (
	namespace = "refit-system"
	// account may read metrics while the picture is made.
	account = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: dashboard-picture, namespace: default}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: dashboard-picture}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: refit-metrics-reader}
subjects: [{kind: ServiceAccount, name: dashboard-picture, namespace: default}]
`
	// maxAnswer bounds what is read of one program.
	maxAnswer = 16 << 20
)

// ports are the ports of the metrics by the programs' names.
var ports = map[string]string{"refit-daemon": "10223", "refit-manager": "8080"}

// recorder reads the metrics of all pods of Refit into a database of its own.
type recorder struct {
	kubectl  string
	interval time.Duration
	token    string
	folder   string
	db       *tsdb.DB
	http     *http.Client
	forwards map[string]*forward // by the names of pods
	readings int
}

// forward is a port of a pod that is reachable from here.
type forward struct {
	program, address string
	command          *exec.Cmd
}

func newRecorder(ctx context.Context, o options) (*recorder, error) {
	r := &recorder{kubectl: o.kubectl, interval: o.interval, forwards: map[string]*forward{}}
	// The programs sign their certificates themselves.
	r.http = &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	if _, err := r.ask(ctx, account, "apply", "--filename=-"); err != nil {
		return nil, err
	}
	token, err := r.ask(ctx, "", "create", "token", "dashboard-picture", "--namespace=default")
	if err != nil {
		return nil, err
	}
	r.token = strings.TrimSpace(token)
	if r.folder, err = os.MkdirTemp("", "dashboard-picture-"); err != nil {
		return nil, err
	}
	return r, r.open()
}

func (r *recorder) open() (err error) {
	r.db, err = tsdb.Open(r.folder, nil, nil, tsdb.DefaultOptions(), nil)
	return err
}

func (r *recorder) close(ctx context.Context) {
	for name := range r.forwards {
		r.end(name)
	}
	_, err := r.ask(ctx, account, "delete", "--ignore-not-found", "--filename=-")
	if err = errors.Join(err, r.db.Close(), os.RemoveAll(r.folder)); err != nil {
		fmt.Fprintln(os.Stderr, "clean up:", err)
	}
}

// ask runs kubectl and returns what it says.
func (r *recorder) ask(ctx context.Context, input string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, r.kubectl, args...)
	command.Stdin = strings.NewReader(input)
	var out, problems bytes.Buffer
	command.Stdout, command.Stderr = &out, &problems
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("kubectl %s: %w: %s", args[0], err, problems.String())
	}
	return out.String(), nil
}

// during reads the metrics at intervals while the command runs. Its own failure is only told: the picture shows that time anyway.
func (r *recorder) during(ctx context.Context, command *exec.Cmd) error {
	command.Stdout, command.Stderr = os.Stderr, os.Stderr
	if err := command.Start(); err != nil {
		return fmt.Errorf("run %s: %w", command.Path, err)
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	ticker := time.NewTicker(r.interval)
	defer ticker.Stop()
	for {
		if err := r.read(ctx); err != nil {
			fmt.Fprintln(os.Stderr, "picture:", err)
		}
		select {
		case err := <-ended:
			if err != nil {
				fmt.Fprintln(os.Stderr, "picture: the command:", err)
			}
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

// read reads the metrics of every pod once.
func (r *recorder) read(ctx context.Context) error {
	list, err := r.ask(ctx, "", "get", "pods", "--namespace="+namespace, "--field-selector=status.phase=Running",
		`--output=jsonpath={range .items[*]}{.metadata.name}{" "}{.metadata.labels.app\.kubernetes\.io/name}{"\n"}{end}`)
	if err != nil {
		return err
	}
	running := map[string]bool{}
	var problems []error
	for line := range strings.Lines(list) {
		pod, program, _ := strings.Cut(strings.TrimSpace(line), " ")
		if ports[program] == "" {
			continue
		}
		running[pod] = true
		if err := r.readPod(ctx, pod, program); err != nil {
			problems = append(problems, fmt.Errorf("metrics of %s: %w", pod, err))
			r.end(pod) // the next reading connects again
		}
	}
	for pod := range r.forwards {
		if !running[pod] {
			r.end(pod)
		}
	}
	return errors.Join(problems...)
}

func (r *recorder) readPod(ctx context.Context, pod, program string) error {
	if r.forwards[pod] == nil {
		connected, err := r.connect(ctx, pod, program)
		if err != nil {
			return err
		}
		r.forwards[pod] = connected
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+r.forwards[pod].address+"/metrics", nil)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+r.token)
	now := time.Now()
	response, err := r.http.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("HTTP status %s: %s", response.Status, body)
	}
	return r.store(ctx, body, map[string]string{"job": program, "instance": pod, "pod": pod, "namespace": namespace}, now)
}

var forwarded = regexp.MustCompile(`127\.0\.0\.1:\d+`)

func (r *recorder) connect(ctx context.Context, pod, program string) (*forward, error) {
	command := exec.CommandContext(ctx, r.kubectl, "port-forward", "--namespace="+namespace, "pod/"+pod, ":"+ports[program])
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	out, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	address := forwarded.FindString(line)
	if address == "" {
		_ = command.Process.Kill()
		_ = command.Wait()
		return nil, fmt.Errorf("kubectl port-forward says %q: %w", line, err)
	}
	return &forward{program: program, address: address, command: command}, nil
}

// end ends the forwarding of a port.
func (r *recorder) end(pod string) {
	if f := r.forwards[pod]; f != nil {
		_ = f.command.Process.Signal(syscall.SIGTERM)
		_ = f.command.Wait()
		delete(r.forwards, pod)
	}
}

// store appends the series of an answer, with the labels of its target.
func (r *recorder) store(ctx context.Context, body []byte, target map[string]string, now time.Time) error {
	parsed, err := textparse.New(body, "text/plain; version=0.0.4", labels.NewSymbolTable(), textparse.ParserOptions{})
	if err != nil {
		return err
	}
	to := r.db.Appender(ctx)
	for {
		entry, err := parsed.Next()
		if errors.Is(err, io.EOF) {
			r.readings++
			return to.Commit()
		}
		if err != nil {
			return errors.Join(err, to.Rollback())
		}
		if entry != textparse.EntrySeries {
			continue
		}
		var has labels.Labels
		parsed.Labels(&has)
		with := labels.NewBuilder(has)
		for name, value := range target {
			with.Set(name, value)
		}
		_, _, value := parsed.Series()
		if _, err := to.Append(0, with.Labels(), now.UnixMilli(), value); err != nil {
			return errors.Join(err, to.Rollback())
		}
	}
}
