package meter

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	byDaemon  = `"user":{"username":"system:serviceaccount:refit-system:refit-daemon"}`
	byManager = `"user":{"username":"system:serviceaccount:refit-system:refit-manager"}`
	byKubelet = `"user":{"username":"system:node:node-1"}`
	statusOf  = `"objectRef":{"resource":"containerrecreaterequests","subresource":"status","namespace":"refit-bench"}`
)

func TestCountWrites(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		log             string
		want            map[string]int
		objects, events int
	}{
		"empty": {want: map[string]int{}},
		"by whom and to what": {
			log: `{"stage":"ResponseComplete","verb":"patch",` + byDaemon + `,` + statusOf + `}
{"stage":"ResponseComplete","verb":"patch",` + byDaemon + `,` + statusOf + `}
{"stage":"ResponseComplete","verb":"update",` + byManager + `,` + statusOf + `}
{"stage":"ResponseComplete","verb":"create",` + byDaemon + `,"objectRef":{"resource":"events","namespace":"refit-bench"}}
`,
			want: map[string]int{
				"refit-daemon patch containerrecreaterequests/status":   2,
				"refit-manager update containerrecreaterequests/status": 1,
				"refit-daemon create events":                            1,
			},
			objects: 3, events: 1,
		},
		"refused ones count": {
			log:     `{"stage":"ResponseComplete","verb":"patch","responseStatus":{"code":409},` + byDaemon + `,` + statusOf + "}\n",
			want:    map[string]int{"refit-daemon patch containerrecreaterequests/status": 1},
			objects: 1,
		},
		"of others, elsewhere, reads and other stages": {
			log: `{"stage":"ResponseComplete","verb":"patch",` + byKubelet + `,"objectRef":{"resource":"pods","subresource":"status","namespace":"refit-bench"}}
{"stage":"ResponseComplete","verb":"patch",` + byDaemon + `,"objectRef":{"resource":"pods","namespace":"default"}}
{"stage":"ResponseComplete","verb":"get",` + byDaemon + `,` + statusOf + `}
{"stage":"ResponseStarted","verb":"patch",` + byDaemon + `,` + statusOf + "}\n",
			want: map[string]int{},
		},
		"a line under way": {
			log:  `{"stage":"ResponseComplete","verb":"pat`,
			want: map[string]int{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := countWrites(strings.NewReader(tc.log), "refit-bench")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
			if objects, events := splitWrites(got); objects != tc.objects || events != tc.events {
				t.Errorf("split into %d and %d, want %d and %d", objects, events, tc.objects, tc.events)
			}
		})
	}
}

func TestCountWritesRefusesABrokenLog(t *testing.T) {
	t.Parallel()
	if counts, err := countWrites(strings.NewReader("{\"stage\":\n"), "refit-bench"); err == nil {
		t.Errorf("got %v, want an error: a count of half a log proves nothing", counts)
	}
}
