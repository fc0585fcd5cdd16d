package hotupdate

import (
	"maps"
	"slices"

	"github.com/refit-project/refit/hotupdate/store"
)

// previousFiles returns the files of kept that the request's trigger has brought, by name with their SHA-256. Some of them
// may be in the new content. After a roll back they may be files of an earlier delivery than the last one.
func (u *Updater) previousFiles(req Request, kept Revision) map[string]string {
	if req.Trigger == "" {
		return nil
	}
	last := u.state.Delivered[req.Trigger]
	previous := map[string]string{}
	maps.Copy(previous, last.Files)
	for _, f := range kept.Files {
		if slices.Contains(last.Earlier[f.Name], f.SHA256) && !slices.ContainsFunc(kept.Requested.Sources, f.From) {
			previous[f.Name] = f.SHA256
		}
	}
	return previous
}

// maxEarlier bounds the number of Delivery.Earlier, and thereby the size of the state.
const maxEarlier = 1000

// earlierFiles returns Delivery.Earlier after a delivery that follows last.
func (u *Updater) earlierFiles(last store.Delivery) map[string][]string {
	earlier := map[string][]string{}
	n := 0
	for _, r := range slices.Backward(u.store.Readable(u.state.Accepted)) {
		for _, f := range r.Files {
			delivered := last.Files[f.Name] == f.SHA256 || slices.Contains(last.Earlier[f.Name], f.SHA256)
			if delivered && n < maxEarlier && !slices.Contains(earlier[f.Name], f.SHA256) {
				earlier[f.Name] = append(earlier[f.Name], f.SHA256)
				n++
			}
		}
	}
	return earlier
}

// deliveriesAfter returns the deliveries of all triggers as they are after the request.
func (u *Updater) deliveriesAfter(req Request, sources []Origin) map[string]store.Delivery {
	if req.Trigger == "" {
		return u.state.Delivered
	}
	all := maps.Clone(u.state.Delivered)
	if all == nil {
		all = map[string]store.Delivery{}
	}
	files := map[string]string{}
	for _, o := range sources {
		files[o.Name] = o.SHA256
	}
	all[req.Trigger] = store.Delivery{Digest: req.TriggerDigest, Files: files, Earlier: u.earlierFiles(all[req.Trigger])}
	return all
}

// saveUnchanged saves the parts of a request that change no file: the delivery of its trigger, or Provisional.
func (u *Updater) saveUnchanged(req Request, sources []Origin) error {
	st := u.state
	switch {
	case req.Trigger == "":
		st.Provisional = req.Provisional
	case u.state.Delivered[req.Trigger].Digest != req.TriggerDigest:
		st.Delivered = u.deliveriesAfter(req, sources)
	default:
		return nil
	}
	if req.DryRun || req.Trigger == "" && st.Provisional == u.state.Provisional {
		return nil
	}
	return u.save(st)
}

// Delivered returns the last delivery of a trigger that was accepted. A roll back does not change it.
func (u *Updater) Delivered(trigger string) store.Delivery {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.state.Delivered[trigger]
}
