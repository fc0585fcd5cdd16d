package hotupdate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Result is how an update ended that did not fail.
type Result struct {
	// Revision is in force, or would be after a dry run.
	Revision Revision
	// Changed is false when it was in force before: nothing was written and nobody told.
	Changed bool
}

// Apply brings the files to what req says. The error is ErrInvalid or ErrBusy, or a *Failure around another
// sentinel of this package.
//
// A request with the version and the digests of the current revision changes nothing and fetches nothing;
// without digests the server is asked whether the content is still the same. After the files are in place ctx
// is heeded still, and its end is a failure: whoever calls from an HTTP handler detaches from the client.
func (u *Updater) Apply(ctx context.Context, req Request) (Result, error) {
	if err := req.Validate(); err != nil {
		return Result{}, err
	}
	if !u.busy.TryLock() {
		return Result{}, ErrBusy
	}
	defer u.busy.Unlock()
	res, err := u.apply(ctx, req)
	return res, u.conclude(req.Version, res.Changed, err)
}

// conclude enters the last phase, and makes err a Failure of the phase it happened in.
func (u *Updater) conclude(version string, changed bool, err error) error {
	if err == nil {
		end := Accepted
		if !changed {
			end = Unchanged
		}
		u.enter(end, version, nil)
		return nil
	}
	failure := &Failure{}
	if !errors.As(err, &failure) {
		failure = &Failure{Phase: u.Status().Phase, Err: err}
	}
	end := Failed
	if failure.RolledBack {
		end = RolledBack
	}
	u.enter(end, version, failure)
	return failure
}

func (u *Updater) apply(ctx context.Context, req Request) (Result, error) {
	u.enter(Fetching, req.Version, nil)
	current, err := u.store.revision(u.state.Current)
	if err != nil {
		return Result{}, err
	}
	if known(current, req) {
		return Result{Revision: current}, nil
	}
	g, err := u.store.stage(u.config.Limits)
	if err != nil {
		return Result{}, err
	}
	defer func() { _ = g.discard() }() // what stays is removed by the next Open
	sources, err := u.gather(ctx, g, req, current)
	if errors.Is(err, errSame) {
		return Result{Revision: current}, nil
	}
	if err != nil {
		return Result{}, err
	}
	u.store.step("fetched")
	if req.Keep {
		if err := g.keep(current); err != nil {
			return Result{}, err
		}
	}
	next := g.preview(req.Version, sources)
	if next.Digest == current.Digest && next.Version == current.Version {
		return Result{Revision: current}, nil
	}
	u.enter(Checking, req.Version, nil)
	candidate := Release{Revision: next, Dir: u.config.Dir, Path: filepath.Join(u.config.Dir, g.dir, "files")}
	if err := runAll(ctx, u.config.Precheck, candidate); err != nil {
		return Result{}, fmt.Errorf("%w: %w", ErrPrecheck, err)
	}
	if req.DryRun {
		return Result{Revision: next}, nil
	}
	u.enter(Writing, req.Version, nil)
	if current, err = u.adopt(current, next); err != nil {
		return Result{}, err
	}
	if next, err = g.seal(req.Version, sources); err != nil {
		return Result{}, err
	}
	u.store.step("sealed")
	return Result{Revision: next, Changed: true}, u.activate(ctx, current, next)
}

// known reports that current is what req asks for, as far as can be told without fetching.
func known(current Revision, req Request) bool {
	if current.Version != req.Version || len(current.Sources) != len(req.Sources) {
		return false
	}
	for i, s := range req.Sources {
		if o := current.Sources[i]; s.SHA256 == "" || !strings.EqualFold(s.SHA256, o.SHA256) || s.name() != o.Name || s.Format != o.Format {
			return false
		}
	}
	return true
}

// errSame: the one source has not changed since the current revision.
var errSame = errors.New("source is unchanged")

// gather fills the stage from all sources.
func (u *Updater) gather(ctx context.Context, g *stage, req Request, current Revision) ([]Origin, error) {
	var origins []Origin
	for _, s := range req.Sources {
		o := Origin{URL: public(s.URL), Address: addressOf(s.URL), Name: s.name(), Format: s.Format}
		etag := ""
		if len(req.Sources) == 1 && len(current.Sources) == 1 && req.Version == current.Version {
			if was := current.Sources[0]; was.Address == o.Address && was.Name == o.Name && was.Format == o.Format {
				etag = was.ETag
			}
		}
		got, err := u.bring(ctx, g, s, &o, etag)
		if err == nil && got.same {
			return nil, errSame
		}
		if err == nil && len(u.config.Keys) > 0 && !req.Trusted {
			err = checkSignature(u.config.Keys, o.SHA256, s.Signature)
		}
		if err == nil && s.Format != Plain {
			err = u.unpack(ctx, g, s)
		}
		if err != nil {
			return nil, fmt.Errorf("source %s: %w", o.Name, err)
		}
		o.ETag = got.etag
		origins = append(origins, o)
	}
	return origins, nil
}

// bring fetches one source into the stage and compares its digest.
func (u *Updater) bring(ctx context.Context, g *stage, s Source, o *Origin, etag string) (answer, error) {
	sink := func(body io.Reader) error {
		return g.save(g.archive(), body, o)
	}
	if s.Format == Plain {
		again := false
		sink = func(body io.Reader) error {
			if again {
				if err := g.drop(o.Name); err != nil {
					return err
				}
			}
			again = true
			return g.put(o.Name, false, body)
		}
	}
	var got answer
	var err error
	if s.URL != "" {
		got, err = u.fetcher.get(ctx, s.URL, etag, sink)
	} else {
		err = sink(bytes.NewReader(s.Data))
	}
	if err != nil || got.same {
		return got, err
	}
	if s.Format == Plain {
		o.SHA256 = g.files[len(g.files)-1].SHA256
	}
	if s.SHA256 != "" && !strings.EqualFold(s.SHA256, o.SHA256) {
		return got, fmt.Errorf("%w: sha256 is %s", ErrDigest, o.SHA256)
	}
	if got.sha256 != "" && got.sha256 != o.SHA256 {
		return got, fmt.Errorf("%w: sha256 is %s, the server announced %s", ErrDigest, o.SHA256, got.sha256)
	}
	return got, nil
}

func (u *Updater) unpack(ctx context.Context, g *stage, s Source) error {
	f, err := g.store.root.Open(g.archive())
	if err != nil {
		return err
	}
	err = unpack(ctx, s.Format, f, u.config.Limits.MaxFiles, func(name string, executable bool, content io.Reader) error {
		return g.put(path.Join(s.Name, name), executable, content)
	})
	return errors.Join(err, f.Close(), g.store.root.Remove(g.archive()))
}

// adopt makes the files that next would replace, and that are not ours, part of the current revision.
func (u *Updater) adopt(current, next Revision) (Revision, error) {
	names := u.store.plain(next.Files)
	if len(names) == 0 {
		return current, nil
	}
	adopted, err := u.store.adopt(current, names, u.config.Limits)
	if err != nil {
		return Revision{}, err
	}
	st := u.state
	st.Current = adopted.ID
	st.Accepted = append(slices.Clone(st.Accepted), adopted.ID)
	if err := u.record(st); err != nil {
		return Revision{}, err
	}
	u.store.step("adopted")
	return adopted, u.store.publish(current, adopted)
}

// public is a URL that can be shown.
func public(source string) string {
	u, err := url.Parse(source)
	if err != nil {
		return ""
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u.String()
}
