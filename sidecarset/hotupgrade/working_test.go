package hotupgrade_test

import (
	"testing"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/sidecarset/hotupgrade"
)

// Annotations of a pod can be lost or changed by its owner. The container that works must be found again, or the one that
// serves would be stopped.
func TestWhichContainerWorks(t *testing.T) {
	t.Parallel()
	type twins = [2]hotupgrade.Twin
	for name, tc := range map[string]struct {
		working string // what the annotation names
		twins   twins
		want    string // the container that works
		begun   bool
		kind    hotupgrade.Kind
	}{
		"named, the other is empty":                    {"x-1", twins{{Image: "v1", Version: "1"}, {Image: empty, Version: "0"}}, "x-1", false, hotupgrade.Settled},
		"the second named, the first is empty":         {"x-2", twins{{Image: empty, Version: "0"}, {Image: "v1", Version: "1"}}, "x-2", false, hotupgrade.Settled},
		"the first named, although it is empty":        {"x-1", twins{{Image: empty, Version: "0"}, {Image: "v1", Version: "1"}}, "x-2", false, hotupgrade.Settled},
		"the second named, although it is empty":       {"x-2", twins{{Image: "v1", Version: "1"}, {Image: empty, Version: "0"}}, "x-1", false, hotupgrade.Settled},
		"none named, the first is empty":               {"", twins{{Image: empty, Version: "0"}, {Image: "v1", Version: "1"}}, "x-2", false, hotupgrade.Settled},
		"none named, the second is empty":              {"", twins{{Image: "v1", Version: "1"}, {Image: empty, Version: "9"}}, "x-1", false, hotupgrade.Settled},
		"none named, the second is newer":              {"", twins{{Image: "v0", Version: "5"}, {Image: "v1", Version: "7"}}, "x-2", true, hotupgrade.Wait},
		"none named, the first is newer":               {"", twins{{Image: "v1", Version: "7"}, {Image: "v0", Version: "5"}}, "x-1", true, hotupgrade.Wait},
		"none named, versions are equal":               {"", twins{{Image: "v1", Version: "7"}, {Image: "v0", Version: "7"}}, "x-1", true, hotupgrade.Wait},
		"the first named, the second is newer":         {"x-1", twins{{Image: "v1", Version: "5"}, {Image: "v0", Version: "7"}}, "x-1", true, hotupgrade.Wait},
		"the second named, the first is newer":         {"x-2", twins{{Image: "v0", Version: "7"}, {Image: "v1", Version: "5"}}, "x-2", true, hotupgrade.Wait},
		"both have the wanted image":                   {"x-2", twins{{Image: "v1", Version: "1"}, {Image: "v1", Version: "7"}}, "x-2", true, hotupgrade.Wait},
		"the empty image is of an earlier version":     {"x-1", twins{{Image: "v1", Version: "1"}, {Image: "empty:0", Version: "0"}}, "x-1", false, hotupgrade.Empty},
		"an earlier empty image, without a name":       {"", twins{{Image: "empty:0", Version: "0"}, {Image: "v1", Version: "1"}}, "x-2", false, hotupgrade.Empty},
		"version 0 with the wanted image is not empty": {"", twins{{Image: "v1", Version: "0"}, {Image: empty, Version: "1"}}, "x-1", false, hotupgrade.Settled},
		"both have version 0":                          {"x-2", twins{{Image: "v1", Version: "0"}, {Image: "v0", Version: "0"}}, "x-2", true, hotupgrade.Return},
		"both are empty":                               {"x-2", twins{{Image: empty, Version: "0"}, {Image: empty, Version: "0"}}, "x-1", false, hotupgrade.Upgrade},
		"an upgrade is under way to another image":     {"x-2", twins{{Image: "v0", Version: "1"}, {Image: "v2", Version: "7"}}, "x-2", true, hotupgrade.Retarget},
		"an upgrade is under way, and is taken back":   {"x-2", twins{{Image: "v1", Version: "1"}, {Image: "v2", Version: "7"}}, "x-2", true, hotupgrade.Return},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.twins[0].Name, tc.twins[1].Name = "x-1", "x-2"
			s := hotupgrade.Sidecar{Name: "x", Working: tc.working, Image: "v1", Empty: empty, Version: 100, Twins: tc.twins}
			if got := s.New(); got != tc.want || s.Begun() != tc.begun {
				t.Errorf("%s works, upgrade begun: %v; want %s, %v", got, s.Begun(), tc.want, tc.begun)
			}
			if got := s.Next().Kind; got != tc.kind {
				t.Errorf("next is %s, want %s", got, tc.kind)
			}
		})
	}
}

// The containers compare versions as numbers: the new one's has to be the highest that any of them has seen.
func TestVersionsGrow(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		working, idle hotupgrade.Twin
		want          string
	}{
		"the SidecarSet's":              {hotupgrade.Twin{Version: "1", Alt: "0"}, hotupgrade.Twin{Version: "0", Alt: "1"}, "100"},
		"above the working container's": {hotupgrade.Twin{Version: "200", Alt: "0"}, hotupgrade.Twin{Version: "0", Alt: "1"}, "201"},
		"above the other container's":   {hotupgrade.Twin{Version: "1", Alt: "300"}, hotupgrade.Twin{Version: "0", Alt: "1"}, "301"},
		"no numbers":                    {hotupgrade.Twin{Version: "x", Alt: "-1"}, hotupgrade.Twin{Version: "0", Alt: ""}, "100"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.working.Name, tc.working.Image, tc.idle.Name, tc.idle.Image = "x-1", "v1", "x-2", empty
			s := hotupgrade.Sidecar{Name: "x", Working: "x-1", Image: "v2", Empty: empty, Version: 100, Twins: [2]hotupgrade.Twin{tc.working, tc.idle}}
			action := s.Next()
			if got := action.Annotations[v1beta1.PrefixSidecarSetVersion+"x-2"]; got != tc.want || action.Annotations[v1beta1.PrefixSidecarSetVersionAlt+"x-1"] != tc.want {
				t.Errorf("annotations %v, want version %s", action.Annotations, tc.want)
			}
		})
	}
}
