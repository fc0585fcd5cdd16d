package hotupdate

import (
	"maps"

	"github.com/refit-project/refit/hotupdate/store"
)

// previousFiles returns the files of the last update of the request's trigger, by SHA-256. Some of them may be in the new one.
func (u *Updater) previousFiles(req Request) map[string]string {
	if req.Trigger == "" {
		return nil
	}
	return u.state.Delivered[req.Trigger].Files
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
	all[req.Trigger] = store.Delivery{Digest: req.TriggerDigest, Files: files}
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
