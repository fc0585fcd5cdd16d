package inpod

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/refit-project/refit/hotupdate"
	"github.com/refit-project/refit/internal/foreign"
	"github.com/refit-project/refit/internal/result"
	"github.com/refit-project/refit/internal/result/output"
)

// report reports the outcome of an update: log, metric, and the configured outputs.
func (p *Plugin) report(version string, began time.Time, res hotupdate.Result, err error) {
	entry := result.Entry{State: result.Succeeded, Value: version + ": Update success", Message: version + ": Update success", At: time.Now()}
	s := summary{Version: version, Phase: hotupdate.Accepted, Digest: res.Revision.Digest, Time: time.Now().UTC().Format(time.RFC3339)}
	if err != nil {
		entry.State = result.Failed
		entry.Value = version + ": Update failed: " + err.Error()
		entry.Message = entry.Value
		s.Phase, s.Error, s.Digest = hotupdate.Failed, foreign.Cut(err.Error(), result.MaxMessage), ""
		if failure := (*hotupdate.Failure)(nil); errors.As(err, &failure) {
			s.RolledBack = failure.RolledBack
		}
		p.host.Logger.Error("update failed", "version", version, "err", err)
	} else {
		p.host.Logger.Info("update accepted", "version", version, "changed", res.Changed, "digest", res.Revision.Digest)
		if res.ReloadSkipped != "" {
			p.host.Logger.Warn("the program was not reloaded", "version", version, "reason", res.ReloadSkipped)
		}
		if len(res.Mended) > 0 {
			p.host.Logger.Warn("files had been changed by somebody else, and are as they were accepted again", "files", res.Mended)
		}
	}
	p.metrics.Observe(time.Since(began), res, err)
	p.put(entry, s, res.Changed || err != nil)
}

// put passes an outcome to the result writer without waiting.
func (p *Plugin) put(entry result.Entry, s summary, changed bool) {
	if len(p.outputs) > 0 {
		p.host.Results.Put(Name, p.outputs, entry)
	}
	if p.config.DetailAnnotationKey != "" && changed {
		if b, err := json.Marshal(s); err == nil {
			detail := entry
			detail.Value = string(b)
			p.host.Results.Put(Name+"/detail", []output.Output{
				output.Annotation{Object: output.Pod(p.host.Pod), Key: p.config.DetailAnnotationKey},
			}, detail)
		}
	}
}

// summary is the outcome as JSON, for the annotation.
type summary struct {
	Version    string          `json:"version"`
	Phase      hotupdate.Phase `json:"phase"`
	Digest     string          `json:"digest,omitempty"`
	Error      string          `json:"error,omitempty"`
	RolledBack bool            `json:"rolledBack,omitempty"`
	Time       string          `json:"time"`
}
