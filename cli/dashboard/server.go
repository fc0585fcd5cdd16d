package dashboard

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/cli/logs"
	"github.com/refit-project/refit/cli/why"
	"github.com/refit-project/refit/internal/console"
)

// Config is the configuration of the command.
type Config struct {
	API client.WithWatch
	// Namespace; empty for all.
	Namespace string
	// System is the namespace of refit-manager and refit-daemon.
	System string
	// ReadOnly refuses actions.
	ReadOnly bool
	// Port of 127.0.0.1; 0 is any.
	Port int
	// Logs opens the log of a container, and Previous reads the end of the log of its previous instance.
	Logs     logs.Open
	Previous why.Logs
	Now      func() time.Time
}

// server serves the pages.
type server struct {
	Config
	watches *watches
	streams chan struct{}
}

// Run serves the pages until ctx ends. It prints their address.
func Run(ctx context.Context, config Config, out io.Writer) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(config.Port)))
	if err != nil {
		return fmt.Errorf("%w: --port: %w", console.ErrUsage, err)
	}
	handler, address, end := newHandler(config, listener.Addr().String())
	defer end()
	const headerTimeout, maxHeader = 5 * time.Second, 32 << 10
	const idleTimeout, writeTimeout = time.Minute, 2 * time.Minute // of answers other than streams, which set their own
	serving := &http.Server{
		Handler: handler, ReadHeaderTimeout: headerTimeout, MaxHeaderBytes: maxHeader, IdleTimeout: idleTimeout, WriteTimeout: writeTimeout,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	fmt.Fprintf(out, "Open %s\nThe address is a secret: who has it acts with your rights. Ctrl-C ends the dashboard.\n", address)
	stop := context.AfterFunc(ctx, func() { _ = serving.Close() }) // streams do not end by themselves
	defer stop()
	if err := serving.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the dashboard: %w", err)
	}
	return nil
}

// newHandler returns the handler, the address for the browser, and a function that ends the watches.
func newHandler(config Config, listening string) (handler http.Handler, address string, end func()) {
	s := newServer(config)
	_, port, _ := net.SplitHostPort(listening)
	g := newGuard(port, config.ReadOnly, s.routes())
	return g, "http://127.0.0.1:" + port + "/?token=" + g.token, s.watches.close
}

func newServer(config Config) *server {
	return &server{Config: config, watches: &watches{api: config.API, open: map[string]*collection{}}, streams: make(chan struct{}, maxStreams)}
}

func (s *server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /assets/{name}", asset)
	mux.HandleFunc("GET /stream/{page...}", s.stream)
	mux.HandleFunc("GET /timeline.svg", s.timeline)
	mux.HandleFunc("GET /log", s.log)
	mux.HandleFunc("GET /act", s.confirm)
	mux.HandleFunc("POST /act", s.act)
	mux.HandleFunc("GET /{page...}", s.show)
	return mux
}

// page is a page that shows a view.
type page struct {
	name string
	// kinds are watched while the page is open.
	kinds []kind
	view  func(context.Context, []*collection) (*View, error)
	// pause is the least time between two updates, if it is longer than combine, because a view reads what is not watched.
	pause time.Duration
}

var (
	errNoPage  = errors.New("there is no such page")
	errMissing = errors.New("there is no such object")
)

// page returns the page that a request asks for.
func (s *server) page(r *http.Request) (page, error) {
	of, err := s.reference(r.URL.Query())
	if err != nil {
		return page{}, err
	}
	switch r.PathValue("page") {
	case "":
		return s.now(), nil
	case "rollout":
		return s.rollout(r.Context(), of)
	case "pod":
		return s.pod(of), nil
	case "nodes":
		return s.nodes(), nil
	case "sidecarsets":
		return s.sidecarSets(), nil
	case "sidecarset":
		return s.sidecarSet(r.Context(), of)
	}
	return page{}, errNoPage
}

// open begins the watches of a page. see returns its present view.
func (s *server) open(ctx context.Context, p page, changed chan<- struct{}) (see func(context.Context) (*View, error), release func()) {
	var used []*collection
	var releases []func()
	for _, of := range p.kinds {
		c, done := s.watches.use(of, changed)
		used, releases = append(used, c), append(releases, done)
	}
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for _, c := range used {
		c.ready(waiting)
	}
	return func(ctx context.Context) (*View, error) { return p.view(ctx, used) }, func() {
		for _, done := range releases {
			done()
		}
	}
}

// show writes a page as HTML.
func (s *server) show(w http.ResponseWriter, r *http.Request) {
	p, err := s.page(r)
	if err != nil {
		s.fail(w, err)
		return
	}
	see, release := s.open(r.Context(), p, make(chan struct{}, 1))
	defer release()
	view, err := see(r.Context())
	if err != nil {
		s.fail(w, err)
		return
	}
	s.write(w, http.StatusOK, document{Page: p.name, Stream: "stream" + r.URL.RequestURI(), View: view})
}

// fail writes an error as a page.
func (s *server) fail(w http.ResponseWriter, err error) {
	code := http.StatusInternalServerError
	switch {
	case errors.Is(err, errNoPage), errors.Is(err, errMissing), apierrors.IsNotFound(err):
		code = http.StatusNotFound
	case errors.Is(err, errNotListed):
		code = http.StatusServiceUnavailable
	case apierrors.IsForbidden(err):
		code = http.StatusForbidden
	case errors.Is(err, console.ErrUsage):
		code = http.StatusBadRequest
	}
	s.write(w, code, document{View: &View{Head: Head{Title: "This page cannot be shown", Summary: console.Message(err)}}})
}
