package hotupdate

import (
	"context"
	"fmt"
	"slices"

	"github.com/refit-project/refit/hotupdate/store"
)

// chooseRevision chooses a revision if the one that was in force is unknown or cannot be read: the newest accepted one that is
// complete, else the files that readers see, else an empty one. Older revisions are kept.
func (u *Updater) chooseRevision(ctx context.Context, st store.State) error {
	from, accepted := u.store.NamesOnly(st.Current), st.Accepted
	if st.Current == "" {
		var err error
		if accepted, err = u.store.IDs(); err != nil {
			return err
		}
		if seen, err := u.store.Visible(); err == nil {
			accepted = accepted[:slices.Index(accepted, seen.ID)+1]
			return u.commit(store.State{Current: seen.ID, Accepted: readable(u.store, accepted)})
		}
	}
	accepted = readable(u.store, accepted)
	for i, r := range slices.Backward(u.store.Readable(accepted)) {
		if u.store.Check(ctx, r) != nil {
			continue
		}
		if err := u.store.Publish(from, r); err != nil {
			return err
		}
		u.interrupted = true
		accepted = append(slices.Delete(accepted, i, i+1), r.ID)
		return u.commit(store.State{Current: r.ID, Accepted: accepted, ReloadPending: true, Provisional: true})
	}
	first, err := u.store.Adopt(ctx, Revision{}, nil, u.config.Limits)
	if err != nil {
		return err
	}
	if err := u.store.Publish(from, first); err != nil {
		return err
	}
	return u.commit(store.State{Current: first.ID, Accepted: append(accepted, first.ID)})
}

func readable(s *store.Store, ids []string) []string {
	var good []string
	for _, r := range s.Readable(ids) {
		good = append(good, r.ID)
	}
	return good
}

// baseRevision returns the revision that a request changes. A revision that cannot be read can only be replaced as a whole.
func (u *Updater) baseRevision(req Request) (Revision, error) {
	if _, err := u.store.Revision(u.state.Current); err != nil && req.Keep {
		return Revision{}, fmt.Errorf("%w: which files the update would keep is not known: roll back to another revision, or send all files and keep none", err)
	}
	return u.inForce(), nil
}

// inForce returns the current revision, or what is known of it if its manifest cannot be read.
func (u *Updater) inForce() Revision {
	current, err := u.store.Revision(u.state.Current)
	if err != nil {
		return u.store.NamesOnly(u.state.Current)
	}
	return current
}

// keepFiles takes over the files of a revision. Files that were changed since they were accepted, by the program or anyone else,
// are taken from another revision or fetched again; mended are their names.
func (u *Updater) keepFiles(ctx context.Context, g *store.Stage, r Revision, removed map[string]string) (mended []string, err error) {
	others := u.store.Readable(u.state.Accepted)
	slices.Reverse(others)
	mended, missing, err := g.Keep(r, removed, others)
	if err != nil || len(missing) == 0 {
		return mended, err
	}
	for _, s := range slices.Concat(r.Requested.Sources, r.Sources) {
		here := func(f File) bool { return f.From(s) && s.URL != "" && !s.Stripped }
		if !slices.ContainsFunc(missing, here) {
			continue
		}
		if err := u.refetch(ctx, g, s, missing); err != nil {
			return nil, fmt.Errorf("%w; fetched again: %w", store.Changed(r, missing), err)
		}
		for _, f := range missing {
			if here(f) {
				mended = append(mended, f.Name)
			}
		}
		missing = slices.DeleteFunc(missing, here)
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("%w; it cannot be fetched again: send it with the update, or roll back to a revision without it", store.Changed(r, missing))
	}
	return mended, nil
}

// refetch fetches the given files from their source.
func (u *Updater) refetch(ctx context.Context, g *store.Stage, o Origin, files []File) error {
	s := Source{URL: o.URL, Name: o.Name, SHA256: o.SHA256, Format: o.Format, Mode: o.Mode}
	if _, err := u.fetchSource(ctx, g, s, &Origin{Name: o.Name}, ""); err != nil || s.Format == Plain {
		return err
	}
	return u.unpack(ctx, g, s, func(name string) bool {
		return !slices.ContainsFunc(files, func(f File) bool { return f.Name == name && f.From(o) })
	})
}

// intact reports whether all files of the revision in force are as accepted, and readers see them.
func (u *Updater) intact(ctx context.Context, r Revision) bool {
	return u.store.Shows(r.ID) && len(u.store.Unlinked(r.Files)) == 0 && u.store.Check(ctx, r) == nil
}

// replacedLinks returns the names of files that both revisions have and whose link in the folder was replaced or removed. It
// leaves out files that the sources of next have. The link is restored with next.
func (u *Updater) replacedLinks(before, next Revision) []string {
	had := before.Names()
	return u.store.Unlinked(slices.DeleteFunc(slices.Clone(next.Files), func(f File) bool {
		return !had[f.Name] || slices.ContainsFunc(next.Sources, f.From)
	}))
}

// merged returns the names of both lists, each once.
func merged(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// rebuild builds the revision again. It restores the accepted content of files that were changed on disk.
func (u *Updater) rebuild(ctx context.Context, r Revision) (Result, error) {
	g, err := u.store.Stage(u.config.Limits)
	if err != nil {
		return Result{}, err
	}
	defer func() { _ = g.Discard() }()
	mended, err := u.keepFiles(ctx, g, r, nil)
	if err != nil {
		return Result{}, err
	}
	made, err := g.Seal(ctx, r.Version, r.Sources, r.Requested)
	return Result{Revision: made, Mended: mended}, err
}
