package hotupdate

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/refit-project/refit/hotupdate/action"
	"github.com/refit-project/refit/hotupdate/archive"
	"github.com/refit-project/refit/hotupdate/fetch"
	"github.com/refit-project/refit/hotupdate/manifest"
	"github.com/refit-project/refit/hotupdate/payload"
	"github.com/refit-project/refit/hotupdate/store"
)

// Result describes an update that has succeeded.
type Result struct {
	// Revision is in force; after a dry run it is the one that would be.
	Revision Revision
	// Changed is false if Revision was in force before. Nothing was written then, and there is no Event.
	Changed bool
	// Mended has the names of files that differed from what was accepted and have been restored.
	Mended []string
	// ReloadSkipped is why a step of the reload was skipped; empty if none was.
	ReloadSkipped string
}

// Apply replaces the files as req says. The error is ErrInvalid, or a *Failure that wraps another sentinel error of this
// package.
//
// A request with the version and the digests of the current revision changes nothing and fetches nothing, if the files on
// disk are unchanged. Without digests the server is asked whether the content has changed. The end of ctx is a failure also
// after the files are in place: an HTTP handler has to detach ctx from its client first.
func (l *Lock) Apply(ctx context.Context, req Request) (Result, error) {
	if err := req.Validate(); err != nil {
		return Result{}, err
	}
	l.skipped = ""
	res, err := l.apply(ctx, req)
	res.ReloadSkipped = l.skipped
	return res, l.finish(req.Version, res.Changed, err)
}

// finish sets the final phase. It wraps err in a Failure with the phase in which it happened.
func (u *Updater) finish(version string, changed bool, err error) error {
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
	current, err := u.baseRevision(req)
	if err != nil {
		return Result{}, err
	}
	if req.Trigger == "" && alreadyCurrent(current, req) && u.intact(ctx, current) {
		return Result{Revision: current}, u.saveUnchanged(req, nil)
	}
	g, err := u.store.Stage(u.config.Limits)
	if err != nil {
		return Result{}, err
	}
	defer func() { _ = g.Discard() }() // the next Open removes what is left
	sources, err := u.fetchSources(ctx, g, req, current)
	if errors.Is(err, errSame) {
		return Result{Revision: current}, u.saveUnchanged(req, current.Sources)
	}
	if err != nil {
		return Result{}, err
	}
	u.store.Step("fetched")
	var mended []string
	kept := current
	if req.Keep && req.KeepUnrequested {
		kept = current.WithoutRequested()
	}
	if req.Keep {
		if mended, err = u.keepFiles(ctx, g, kept, u.previousFiles(req, kept)); err != nil {
			return Result{}, err
		}
	}
	next := g.Preview(req.Version, sources)
	mended = merged(mended, u.replacedLinks(kept, next))
	lineage := requested(req, kept, next)
	if err := checkCandidate(req, current, next, lineage); err != nil {
		return Result{}, err
	}
	if next.Digest == current.Digest && next.Version == current.Version && len(mended) == 0 && u.intact(ctx, current) {
		return Result{Revision: current}, u.saveUnchanged(req, sources)
	}
	u.enter(Checking, req.Version, nil)
	if err := action.RunAll(ctx, u.config.Precheck, u.release(next.Version, g.Path())); err != nil {
		return Result{}, fmt.Errorf("%w: %w", ErrPrecheck, err)
	}
	if req.DryRun {
		return Result{Revision: next}, nil
	}
	u.enter(Writing, req.Version, nil)
	if current, err = u.adopt(ctx, current, next); err != nil {
		return Result{}, err
	}
	if next, err = g.Seal(ctx, req.Version, sources, lineage); err != nil {
		return Result{}, err
	}
	u.store.Step("sealed")
	after := store.State{Delivered: u.deliveriesAfter(req, sources), ReloadPending: req.NoReload && req.ReloadLater, ToRecord: u.state.ToRecord, Provisional: req.Provisional}
	if req.Trigger != "" {
		after.Provisional = u.state.Provisional
	}
	if req.Record {
		after.ToRecord = time.Now().UTC()
	}
	return Result{Revision: next, Changed: true, Mended: mended}, u.activate(ctx, current, next, req.NoReload, after)
}

// errSame means that the only source has not changed since the current revision.
var errSame = errors.New("source is unchanged")

// fetchSources fetches all sources into the stage.
func (u *Updater) fetchSources(ctx context.Context, g *store.Stage, req Request, current Revision) ([]Origin, error) {
	var origins []Origin
	order := slices.All(req.Sources)
	if req.Layered { // the last source first: it hides files of earlier ones
		order = slices.Backward(req.Sources)
	}
	var above manifest.Layer
	for _, s := range order {
		if req.Layered {
			above = g.Layer()
		}
		o := Origin{Address: payload.Address(s.URL), Name: s.Path(), Format: s.Format, Mode: s.Mode, Signature: s.Signature}
		o.URL, o.Stripped = payload.Public(s.URL, u.config.StoreQueries)
		if s.Format == Plain && above.Hides(o.Name) {
			continue
		}
		etag := ""
		if len(req.Sources) == 1 && len(current.Sources) == 1 && req.Version == current.Version && (req.Keep || !current.Kept) {
			was := current.Sources[0]
			same := was.Address == o.Address && was.Name == o.Name && was.Format == o.Format && s.Mode == 0
			if same && (s.SHA256 == "" || strings.EqualFold(s.SHA256, was.SHA256)) && u.intact(ctx, current) {
				etag = was.ETag
			}
		}
		got, err := u.fetchSource(ctx, g, s, &o, etag)
		if err == nil && got.Unchanged {
			return nil, errSame
		}
		if err == nil && len(u.config.Keys) > 0 && !req.Trusted {
			err = payload.CheckSignature(u.config.Keys, o.SHA256, s.Signature)
		}
		if err == nil && s.Format != Plain {
			err = u.unpack(ctx, g, s, above.Hides)
		}
		if err != nil {
			return nil, fmt.Errorf("source %s: %w", cmp.Or(o.Name, string(o.Format)), err)
		}
		o.ETag = got.ETag
		origins = append(origins, o)
	}
	if req.Layered {
		slices.Reverse(origins)
	}
	return origins, nil
}

// fetchSource fetches one source into the stage and checks its digest.
func (u *Updater) fetchSource(ctx context.Context, g *store.Stage, s Source, o *Origin, etag string) (fetch.Answer, error) {
	sink := func(body io.Reader) (err error) {
		o.SHA256, err = g.SaveArchive(body)
		return err
	}
	if s.Format == Plain {
		again := false
		sink = func(body io.Reader) error {
			if again {
				if err := g.Drop(o.Name); err != nil {
					return err
				}
			}
			again = true
			written, err := g.Put(o.Name, s.Mode, body)
			o.SHA256 = written.SHA256
			return err
		}
	}
	var got fetch.Answer
	var err error
	if s.URL != "" {
		got, err = u.fetcher.Get(ctx, s.URL, etag, sink)
	} else {
		err = sink(bytes.NewReader(s.Data))
	}
	if err != nil || got.Unchanged {
		return got, err
	}
	if s.SHA256 != "" && !strings.EqualFold(s.SHA256, o.SHA256) {
		return got, fmt.Errorf("%w: sha256 is %s", ErrDigest, o.SHA256)
	}
	if got.SHA256 != "" && got.SHA256 != o.SHA256 {
		return got, fmt.Errorf("%w: sha256 is %s, the server announced %s", ErrDigest, o.SHA256, got.SHA256)
	}
	return got, nil
}

func (u *Updater) unpack(ctx context.Context, g *store.Stage, s Source, hidden func(name string) bool) error {
	before := g.Layer()
	return g.TakeArchive(func(f *os.File) error {
		// Hidden files do not count: the stage limits what is added to it.
		return archive.Unpack(ctx, s.Format, f, u.config.Limits, func(name string, executable bool, content io.Reader) error {
			mode := fs.FileMode(0o644)
			if executable {
				mode = 0o755
			}
			name = path.Join(s.Name, name)
			if hidden(name) {
				return nil
			}
			_, err := g.Put(name, mode, content)
			if errors.Is(err, ErrInvalid) && !before.Hides(name) {
				return fmt.Errorf("%w: %s: appears twice, or as a file and as a folder", ErrArchive, name)
			}
			return err
		})
	})
}

// adopt adds files that next would replace, and that Refit has not written, to the current revision.
func (u *Updater) adopt(ctx context.Context, current, next Revision) (Revision, error) {
	if err := u.store.CheckFolders(next.Files); err != nil {
		return Revision{}, err
	}
	names := u.store.Foreign(next.Files, current.Names())
	if len(names) == 0 {
		return current, nil
	}
	adopted, err := u.store.Adopt(ctx, current, names, u.config.Limits)
	if err != nil {
		return Revision{}, err
	}
	st := u.state
	st.Current = adopted.ID
	st.Accepted = append(slices.Clone(st.Accepted), adopted.ID)
	if err := u.save(st); err != nil {
		return Revision{}, err
	}
	u.store.Step("adopted")
	return adopted, u.store.Publish(current, adopted)
}
