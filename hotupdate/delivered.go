package hotupdate

import (
	"maps"

	"github.com/refit-project/refit/hotupdate/store"
)

// dropped are files that the request's trigger brought before, with their SHA-256. It brings some of them again.
func (u *Updater) dropped(req Request) map[string]string {
	if req.Trigger == "" {
		return nil
	}
	return u.state.Delivered[req.Trigger].Files
}

// delivered is the record of all triggers once the request has been accepted.
func (u *Updater) delivered(req Request, sources []Origin) map[string]store.Delivery {
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

// same records what is new about a request that changes no file.
func (u *Updater) same(req Request, sources []Origin) error {
	st := u.state
	switch {
	case req.Trigger == "":
		st.Provisional = req.Provisional
	case u.state.Delivered[req.Trigger].Digest != req.TriggerDigest:
		st.Delivered = u.delivered(req, sources)
	default:
		return nil
	}
	if req.DryRun || req.Trigger == "" && st.Provisional == u.state.Provisional {
		return nil
	}
	return u.record(st)
}

// Delivered is what a trigger brought last that was accepted. It stays when that is rolled back.
func (u *Updater) Delivered(trigger string) store.Delivery {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.state.Delivered[trigger]
}
