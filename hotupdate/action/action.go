// Package action runs the steps of a release: signal, HTTP request, command or touched file, each with a timeout and a
// number of attempts, and the verification that repeats checks.
//
// It contains: the steps and the order of attempts. Which process is signalled is decided behind an interface; files and
// revisions must stay out.
package action

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/refit-project/refit/internal/foreign"
	"github.com/refit-project/refit/internal/wait"
)

// Release is the revision that a Step works on.
type Release struct {
	// Version of the revision.
	Version string
	// Dir is the folder shared with the program. Path has only this revision's files; before they are in place it is the
	// candidate.
	Dir, Path string
}

// ErrImpossible means that a step can never succeed where this program runs, for any release.
var ErrImpossible = errors.New("not possible here")

// Step is one action for a release. It returns nil when it has succeeded.
type Step interface {
	Run(ctx context.Context, r Release) error
}

// Action is a Step with a name, a timeout and a number of attempts.
type Action struct {
	Name string
	Step Step
	// Timeout bounds one attempt; 10 s when zero.
	Timeout time.Duration
	// Attempts is the maximum number of attempts, with Pause between them; 1 when zero.
	Attempts int
	Pause    time.Duration
}

const actionTimeout = 10 * time.Second

// Run makes the attempts. Its error names the action.
func (a Action) Run(ctx context.Context, r Release) error {
	if a.Timeout == 0 {
		a.Timeout = actionTimeout
	}
	for attempt := 1; ; attempt++ {
		err := a.once(ctx, r)
		if err == nil {
			return nil
		}
		if attempt >= a.Attempts || errors.Is(err, ErrImpossible) || wait.For(ctx, a.Pause) != nil {
			return fmt.Errorf("%s: %w", a.Name, err)
		}
	}
}

func (a Action) once(ctx context.Context, r Release) error {
	ctx, cancel := context.WithTimeout(ctx, a.Timeout)
	defer cancel()
	return a.Step.Run(ctx, r)
}

// RunAll runs the actions in order and stops at the first failure.
func RunAll(ctx context.Context, actions []Action, r Release) error {
	for _, a := range actions {
		if err := a.Run(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// Verification decides whether the program works with the new files.
type Verification struct {
	// Checks must all pass. Without checks nothing is verified.
	Checks []Action
	// Within bounds the time until the checks pass for the first time. For is how long they must pass from then on.
	Within, For time.Duration
	// Interval is the time between rounds; 1 s when zero.
	Interval time.Duration
}

// Run repeats the checks until they have passed for the required time.
func (v Verification) Run(ctx context.Context, r Release) error {
	if len(v.Checks) == 0 {
		return nil
	}
	if v.Interval == 0 {
		v.Interval = time.Second
	}
	began := time.Now()
	var wellSince time.Time
	for {
		err := RunAll(ctx, v.Checks, r)
		now := time.Now()
		switch {
		case err == nil && wellSince.IsZero():
			wellSince = now
		case err != nil && !wellSince.IsZero():
			return fmt.Errorf("checks passed for %s, then failed: %w", now.Sub(wellSince).Round(time.Millisecond), err)
		case err != nil && now.Sub(began) >= v.Within:
			return err
		}
		if err == nil && now.Sub(wellSince) >= v.For {
			return nil
		}
		if stopped := wait.For(ctx, v.Interval); stopped != nil {
			return errors.Join(stopped, err)
		}
	}
}

// Signaler signals the program. The implementation selects the signal and the process.
type Signaler interface {
	Signal(ctx context.Context) error
}

// Signal is the Step of a Signaler.
type Signal struct{ Signaler Signaler }

// Run implements Step.
func (s Signal) Run(ctx context.Context, _ Release) error { return s.Signaler.Signal(ctx) }

// Execer runs a command until it exits. Its error contains the output if the exit code is not 0.
type Execer interface {
	Exec(ctx context.Context, command []string) error
}

// Command runs a command. In its arguments {path} is replaced by Release.Path, {dir} by Release.Dir and {version} by the
// version.
type Command struct {
	Execer  Execer
	Command []string
}

// ErrVersion means that the version has characters with a meaning for a shell, so that it cannot be passed to a command.
var ErrVersion = errors.New("version cannot be used in a command")

// plainVersion matches versions without characters that a shell would interpret, and that are not an option.
var plainVersion = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+:@-]*$`)

// Run implements Step.
func (c Command) Run(ctx context.Context, r Release) error {
	command := make([]string, len(c.Command))
	for i, word := range c.Command {
		if strings.Contains(word, "{version}") && !plainVersion.MatchString(r.Version) {
			return fmt.Errorf("%w: %q: want letters, digits and . _ + : @ -", ErrVersion, r.Version)
		}
		command[i] = strings.NewReplacer("{path}", r.Path, "{dir}", r.Dir, "{version}", r.Version).Replace(word)
	}
	return c.Execer.Exec(ctx, command)
}

// Touch sets the times of a file in the folder to now, for programs that watch these times. It creates an empty file if
// there is none.
type Touch struct{ Name string }

// Run implements Step.
func (t Touch) Run(_ context.Context, r Release) error {
	root, err := os.OpenRoot(r.Dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	now := time.Now()
	if err := root.Chtimes(t.Name, now, now); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := root.OpenFile(t.Name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	return f.Close()
}

// Call is an HTTP request to the program.
type Call struct {
	// Method is POST when empty.
	Method, URL string
	Header      http.Header
	Body        string
	// ExpectedStatus is the status code of success; 0 accepts 200 to 299.
	ExpectedStatus int
	// Client sends the request; nil uses a client that neither keeps connections nor follows redirects.
	Client *http.Client
}

// maxSaid bounds the part of a response body in an error, in bytes.
const maxSaid = 512

// Run implements Step.
func (c Call) Run(ctx context.Context, _ Release) error {
	method := c.Method
	if method == "" {
		method = http.MethodPost
	}
	req, err := http.NewRequestWithContext(ctx, method, c.URL, strings.NewReader(c.Body))
	if err != nil {
		return withoutURL(err)
	}
	for name, values := range c.Header {
		req.Header[http.CanonicalHeaderKey(name)] = values
	}
	req.Host = req.Header.Get("Host")
	client := c.Client
	if client == nil {
		client = &http.Client{
			Transport:     &http.Transport{DisableKeepAlives: true, MaxResponseHeaderBytes: 64 << 10},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
	}
	resp, err := client.Do(req)
	if err != nil {
		return withoutURL(err)
	}
	defer resp.Body.Close()
	// With the whole of the character at the limit. An error of reading does not matter: the text is only an addition to the status.
	said, _ := io.ReadAll(io.LimitReader(resp.Body, maxSaid+utf8.UTFMax))
	if c.ExpectedStatus == resp.StatusCode || c.ExpectedStatus == 0 && resp.StatusCode/100 == 2 {
		return nil
	}
	return fmt.Errorf("status %d: %s", resp.StatusCode, strings.TrimSpace(foreign.Cut(string(said), maxSaid)))
}

// withoutURL removes the URL that net/http puts before an error, because it may contain a password or a token.
func withoutURL(err error) error {
	var at *url.Error
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}
