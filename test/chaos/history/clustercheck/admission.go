package clustercheck

import (
	"net/http"

	"github.com/refit-project/refit/test/chaos/history/entry"
)

// admission checks that the webhook answers while its certificates are replaced: no request is refused for want of it.
func (c check) admission() {
	for _, fault := range c.Faults {
		if fault.Kind != entry.KindCertificateRotation {
			continue
		}
		for _, w := range c.Writes {
			if w.Resource == entry.RequestResource && w.Verb == "create" && w.Code == http.StatusInternalServerError && fault.Overlaps(w.Received, w.Done) {
				c.Violate("admission", "request "+w.Namespace+"/"+w.Name, "could not be created while certificates were replaced", fault.Line, w.Line)
			}
		}
	}
}
