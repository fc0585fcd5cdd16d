package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"sync/atomic"
	"syscall"
	"time"
)

const usage = `testapp [flags]       run until SIGTERM or SIGINT, and write down what happens
testapp note TEXT     write down TEXT, for exec preStop hooks
testapp sleep D       do nothing for D, for example 5s
testapp state FILE    print the state and end with 0 if it is "up", for exec probes
testapp state FILE TEXT  set it
testapp post URL JSON  send it once and print the status and the answer; certificates are not verified
testapp updates [flags]  have a sidecar update files again and again

`

// exitUsage and exitBroken are not the codes of --exit-code's default or of a signal.
const (
	exitUsage  = 2
	exitBroken = 125
)

type config struct {
	ignoreTerm bool
	exitCode   int
	crashAfter time.Duration
	termDelay  time.Duration
	http       string
	readyAfter time.Duration
	state      string
	tcp, grpc  string
	files      string
	otlp       string
}

// run is the program without what only a process has. It returns the exit code.
func run(args []string, getenv func(string) string, stdout io.Writer, signals <-chan os.Signal) int {
	j, err := newJournal(getenv, stdout)
	if err == nil {
		var code int
		code, err = dispatch(args, j, signals)
		err = errors.Join(err, j.close())
		if err == nil {
			return code
		}
	}
	fmt.Fprintln(os.Stderr, "testapp:", err)
	if errors.Is(err, errUsage) {
		return exitUsage
	}
	return exitBroken
}

var errUsage = errors.New("usage")

func dispatch(args []string, j *journal, signals <-chan os.Signal) (int, error) {
	switch {
	case len(args) == 2 && args[0] == "note":
		return 0, j.add(line{Event: eventNote, Text: args[1]})
	case (len(args) == 2 || len(args) == 3) && args[0] == "state":
		return state(args[1:], os.Stdout)
	case len(args) == 3 && args[0] == "post":
		return post(args[1], args[2], os.Stdout)
	case len(args) == 2 && args[0] == "sleep":
		d, err := time.ParseDuration(args[1])
		if err != nil {
			return 0, fmt.Errorf("%w: %w", errUsage, err)
		}
		<-time.After(d)
		return 0, nil
	}
	if len(args) > 0 && args[0] == "updates" {
		return updates(args[1:], j, signals)
	}
	cfg, err := parse(args)
	if err != nil {
		return 0, err
	}
	return serve(cfg, j, signals)
}

func parse(args []string) (config, error) {
	var cfg config
	flags := flag.NewFlagSet("testapp", flag.ContinueOnError)
	flags.BoolVar(&cfg.ignoreTerm, "ignore-term", false, "write SIGTERM down and go on")
	flags.IntVar(&cfg.exitCode, "exit-code", 0, "exit code after a signal or a crash")
	flags.DurationVar(&cfg.crashAfter, "crash-after", 0, "exit by itself after this time")
	flags.DurationVar(&cfg.termDelay, "term-delay", 0, "time from SIGTERM to the exit")
	flags.StringVar(&cfg.http, "http", "", "address to serve /, /ready and /prestop?sleep=D on, for example :8080; after /prestop connections are closed with the next answer of /")
	flags.DurationVar(&cfg.readyAfter, "ready-after", 0, "time from which on /ready answers 200; before that 503")
	flags.StringVar(&cfg.state, "state", "", "file with the state: unless it reads \"up\" or is not there, GET /state answers 503, gRPC NOT_SERVING and TCP not at all; PUT /state writes it")
	flags.StringVar(&cfg.tcp, "tcp", "", "address to accept connections on")
	flags.StringVar(&cfg.files, "files", "", "folder of files to follow; SIGHUP has them loaded, and GET /version says which are")
	flags.StringVar(&cfg.grpc, "grpc", "", "address to serve grpc.health.v1 on")
	flags.StringVar(&cfg.otlp, "otlp", "", "address to accept traces on, over OTLP/gRPC; each span is written down")
	flags.Usage = func() {
		fmt.Fprint(flags.Output(), usage)
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return cfg, fmt.Errorf("%w: %w", errUsage, err)
	}
	if flags.NArg() > 0 {
		return cfg, fmt.Errorf("%w: unexpected %q", errUsage, flags.Args())
	}
	return cfg, nil
}

// serve is the life of the container's main process.
func serve(cfg config, j *journal, signals <-chan os.Signal) (int, error) {
	started := time.Now()
	if err := j.add(line{Event: eventStart}); err != nil {
		return 0, err
	}
	broken := make(chan error, 1)
	files := &follower{folder: cfg.files, journal: j}
	if cfg.files != "" {
		if err := files.load(); err != nil {
			return 0, err
		}
		defer files.follow(broken)()
	}
	stop, err := listenAll(cfg, j, files, started, broken)
	if err != nil {
		return 0, err
	}
	defer stop()
	var crash, term <-chan time.Time
	if cfg.crashAfter > 0 {
		crash = time.After(cfg.crashAfter)
	}
	for {
		select {
		case err := <-broken:
			return 0, err
		case <-crash:
			return cfg.exitCode, j.exit(cfg.exitCode, "crash")
		case <-term:
			return cfg.exitCode, j.exit(cfg.exitCode, "signal")
		case s := <-signals:
			if err := j.add(line{Event: eventSignal, Signal: name(s)}); err != nil {
				return 0, err
			}
			if s == syscall.SIGHUP && cfg.files != "" {
				if err := files.load(); err != nil {
					return 0, err
				}
			}
			if ends(s) && !cfg.ignoreTerm && term == nil {
				term = time.After(cfg.termDelay)
			}
		}
	}
}

func (j *journal) exit(code int, why string) error {
	return j.add(line{Event: eventExit, ExitCode: &code, Text: why})
}

// ends is true for the signals a runtime stops containers with; some images use SIGQUIT.
func ends(s os.Signal) bool {
	return s == syscall.SIGTERM || s == syscall.SIGINT || s == syscall.SIGQUIT
}

// listenAll serves what is asked for until stop is called.
func listenAll(cfg config, j *journal, files *follower, started time.Time, broken chan<- error) (stop func(), err error) {
	var stops []func()
	stop = func() {
		for _, stop := range slices.Backward(stops) {
			stop()
		}
	}
	for _, server := range []struct {
		address string
		listen  func() (stop func(), err error)
	}{
		{cfg.http, func() (func(), error) { return listen(cfg, j, files, started, broken) }},
		{cfg.grpc, func() (func(), error) { return listenGRPC(cfg.grpc, cfg.state, broken) }},
		{cfg.otlp, func() (func(), error) { return listenOTLP(cfg.otlp, j, broken) }},
		{cfg.tcp, func() (func(), error) { return listenTCP(cfg.tcp, cfg.state, broken), nil }},
	} {
		if server.address == "" {
			continue
		}
		end, err := server.listen()
		if err != nil {
			stop()
			return nil, err
		}
		stops = append(stops, end)
	}
	return stop, nil
}

// listen serves until stop is called. Faults go to broken.
func listen(cfg config, j *journal, files *follower, started time.Time, broken chan<- error) (stop func(), err error) {
	listener, err := net.Listen("tcp", cfg.http) //nolint:noctx // once, at start
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	server := &http.Server{Handler: handler(cfg, j, files, started, broken), ReadHeaderTimeout: 10 * time.Second}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			report(broken, err)
		}
	}()
	if err := j.add(line{Event: eventReady, Text: listener.Addr().String()}); err != nil {
		report(broken, err)
	}
	return func() {
		_ = server.Close()
		<-done
	}, nil
}

func handler(cfg config, j *journal, files *follower, started time.Time, broken chan<- error) http.Handler {
	mux := http.NewServeMux()
	var closing atomic.Bool // connections are closed after the next answer
	mux.HandleFunc("/{$}", func(w http.ResponseWriter, _ *http.Request) {
		if closing.Load() {
			w.Header().Set("Connection", "close")
		}
		fmt.Fprintln(w, "testapp")
	})
	mux.HandleFunc("/ready", func(w http.ResponseWriter, _ *http.Request) {
		if time.Since(started) < cfg.readyAfter {
			http.Error(w, "not yet", http.StatusServiceUnavailable)
		}
	})
	mux.HandleFunc("/state", serveState(cfg.state))
	mux.HandleFunc("/version", files.serveVersion)
	mux.HandleFunc("/endless", func(w http.ResponseWriter, _ *http.Request) {
		chunk := bytes.Repeat([]byte("endless "), 4<<10)
		for {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	})
	mux.HandleFunc("/prestop", func(w http.ResponseWriter, r *http.Request) {
		closing.Store(true)
		if err := j.add(line{Event: eventPreStop, Text: r.URL.RawQuery}); err != nil {
			report(broken, err)
		}
		text := r.URL.Query().Get("sleep")
		if text == "" {
			return
		}
		d, err := time.ParseDuration(text)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		select {
		case <-time.After(d):
		case <-r.Context().Done():
		}
	})
	return mux
}

// report keeps the first fault; one is enough to end.
func report(broken chan<- error, err error) {
	select {
	case broken <- err:
	default:
	}
}

func name(s os.Signal) string {
	if n, ok := s.(syscall.Signal); ok {
		return signalName(n)
	}
	return s.String()
}
