package inpod

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/refit-project/refit/test/kit/hostile"
	"github.com/refit-project/refit/test/kit/watchdog"
)

func TestFaultsOfAnAnnotationAreBounded(t *testing.T) {
	t.Parallel()
	_, errs := parse(`[{"name":"`+strings.Repeat("é", 10_000)+`"}`+strings.Repeat(`,{"name":"x"}`, 9_000)+`]`, ownPod)
	if errs == nil || len(errs.Error()) > maxErrors*(maxError+4) || !utf8.ValidString(errs.Error()) {
		t.Errorf("%d bytes: %.300v", len(errs.Error()), errs)
	}
}

// FuzzHostileAnnotations makes annotations of their parts.
func FuzzHostileAnnotations(f *testing.F) {
	for _, seed := range hostile.Seeds() {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed []byte) {
		watchdog.Watch(t, func() {
			probes, errs := parse(string(hostile.JSON([]wanted{}, seed)), ownPod)
			if len(probes) > maxProbes {
				t.Errorf("%d probes", len(probes))
			}
			if errs != nil && len(errs.Error()) > (maxErrors+1)*(maxError+300) {
				t.Errorf("%d bytes are told", len(errs.Error()))
			}
		})
	})
}
