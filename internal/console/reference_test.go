package console_test

import (
	"testing"

	"github.com/refit-project/refit/internal/console"
)

func TestKindAndName(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"pod/web-0": "pod web-0", "Deployment/Web": "deployment Web", "web": "", "pod/": "", "pod/a/b": "", "": ""} {
		kind, name, ok := console.KindName(text)
		if ok != (want != "") || ok && kind+" "+name != want {
			t.Errorf("%q: %q %q %t", text, kind, name, ok)
		}
	}
	for kind, want := range map[string]bool{
		"sidecarset": true, "sidecarsets": true, "sidecarset.apps.kruise.io": true, "sidecarset.apps": false, "sidecarset.": false, "sidecar": false, "": false,
	} {
		if console.IsSidecarSet(kind) != want {
			t.Errorf("%q: %t", kind, !want)
		}
	}
	for _, kind := range []string{"pod", "pods", "po", "node", ""} {
		if console.IsPod(kind) != (kind == "pod" || kind == "pods" || kind == "po") {
			t.Errorf("%q: %t", kind, console.IsPod(kind))
		}
	}
}
