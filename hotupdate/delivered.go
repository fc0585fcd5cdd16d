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

// deliver records a trigger's content that changes nothing.
func (u *Updater) deliver(req Request, sources []Origin) error {
	if req.Trigger == "" || u.state.Delivered[req.Trigger].Digest == req.TriggerDigest {
		return nil
	}
	st := u.state
	st.Delivered = u.delivered(req, sources)
	return u.record(st)
}

// Delivered is what a trigger brought last that was accepted. It stays when that is rolled back.
func (u *Updater) Delivered(trigger string) store.Delivery {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.state.Delivered[trigger]
}
