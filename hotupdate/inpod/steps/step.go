package steps

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"github.com/refit-project/refit/hotupdate/action"
	"github.com/refit-project/refit/internal/foreign"
	"github.com/refit-project/refit/internal/process"
	"github.com/refit-project/refit/plugin"
	"github.com/refit-project/refit/probe"
	"github.com/refit-project/refit/probe/endpoint"
)

// signaler implements action.Signaler.
type signaler struct {
	finder process.Finder
	signal syscall.Signal
}

// Signal sends the signal to the selected process.
func (s signaler) Signal(ctx context.Context) error {
	if s.finder.FS == nil {
		return errors.New("processes cannot be seen here")
	}
	s.awaitHandler(ctx)
	_, err := s.finder.Signal(ctx, s.signal)
	if errors.Is(err, process.ErrNotShared) {
		return fmt.Errorf("%w: %w", action.ErrImpossible, err)
	}
	return err
}

// execer implements action.Execer in the sidecar's own container.
type execer struct{}

// Exec runs a command. If it fails, the error contains its output.
func (execer) Exec(ctx context.Context, command []string) error {
	end, err := probe.Local{}.Exec(ctx, command)
	if err != nil || end.ExitCode == 0 {
		return err
	}
	said := strings.TrimSpace(end.Stderr)
	if said == "" {
		said = strings.TrimSpace(end.Stdout)
	}
	const most = 512
	return fmt.Errorf("exit code %d: %s", end.ExitCode, foreign.Cut(said, most))
}

// Verification translates the checks. A nil receiver means no verification.
func (v *Verify) Verification(host plugin.Host) (action.Verification, error) {
	if v == nil {
		return action.Verification{}, nil
	}
	made := action.Verification{Within: seconds(v.WithinSeconds), For: seconds(v.ForSeconds), Interval: seconds(v.IntervalSeconds)}
	var errs []error
	for i := range v.Checks {
		c := check{endpoint: v.Checks[i], host: host}
		_, err := c.prober("v0")
		if err != nil {
			errs = append(errs, fmt.Errorf("verify.checks[%d]: %w", i, err))
		}
		made.Checks = append(made.Checks, action.Action{Name: "check " + c.endpoint.Title(), Step: c, Timeout: c.endpoint.ProbeTimeout()})
	}
	return made, errors.Join(errs...)
}

// check implements action.Step: it fails unless a probe succeeds.
type check struct {
	endpoint endpoint.Endpoint
	host     plugin.Host
}

// placeholder stands for the version in a check.
const placeholder = "{version}"

// ComparesVersion reports whether a check refers to the version. Such a check cannot distinguish two contents of one version.
func (v *Verify) ComparesVersion() bool {
	return v != nil && slices.ContainsFunc(v.Checks, func(e endpoint.Endpoint) bool {
		texts := []string{e.URL, e.ExpectedResult}
		if e.File != nil {
			texts = append(texts, e.File.Content)
		}
		if e.JSONPathConfig != nil {
			texts = append(texts, fmt.Sprint(e.JSONPathConfig.Value))
		}
		return slices.ContainsFunc(texts, func(s string) bool { return strings.Contains(s, placeholder) })
	})
}

func (c check) prober(version string) (probe.Prober, error) {
	e := c.endpoint
	fill := func(s string) string { return strings.ReplaceAll(s, placeholder, version) }
	e.URL = strings.ReplaceAll(e.URL, placeholder, url.QueryEscape(version))
	if e.File != nil {
		file := *e.File
		file.Content = strings.ReplaceAll(file.Content, placeholder, regexp.QuoteMeta(version))
		e.File = &file
	}
	if e.JSONPathConfig != nil {
		path := *e.JSONPathConfig
		if s, ok := path.Value.(string); ok {
			path.Value = fill(s)
		}
		e.JSONPathConfig = &path
	}
	if e.ExpectedResult != "" {
		e.ExpectedResult = fill(e.ExpectedResult)
	}
	return e.Prober(c.host)
}

// Run implements action.Step.
func (c check) Run(ctx context.Context, r action.Release) error {
	p, err := c.prober(r.Version)
	if err != nil {
		return err
	}
	defer probe.Close(p)
	if outcome := p.Probe(ctx); outcome.State != probe.Succeeded {
		return fmt.Errorf("%s: %s", strings.ToLower(string(outcome.State)), outcome.Message)
	}
	return nil
}

// hostOf returns the host of a URL, for names that anyone may see.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Host
}
