package audit

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWritesAreReadFromTheLog(t *testing.T) {
	t.Parallel()
	line := func(stage, verb, user, resource string) string {
		name, subresource, _ := strings.Cut(resource, "/")
		return fmt.Sprintf(`{"stage":%q,"verb":%q,"user":{"username":%q},"objectRef":{"resource":%q,"subresource":%q,"namespace":"shop"}}`+"\n",
			stage, verb, user, name, subresource)
	}
	const done, daemon, manager = "ResponseComplete", users + "refit-daemon", users + "refit-manager"
	for name, tc := range map[string]struct {
		log  string
		want []string
	}{
		"empty": {},
		"by whom and to what": {
			line(done, "patch", daemon, "containerrecreaterequests/status") + line(done, "update", manager, "nodeimages") + line(done, "create", daemon, "events"),
			[]string{"refit-daemon patch containerrecreaterequests/status", "refit-manager update nodeimages", "refit-daemon create events"},
		},
		"refused": {
			strings.Replace(line(done, "patch", daemon, "pods"), "{", `{"responseStatus":{"code":409},`, 1),
			[]string{"refit-daemon patch pods"},
		},
		"of others":      {log: line(done, "patch", "system:node:node-1", "pods/status")},
		"reads":          {log: line(done, "get", daemon, "pods") + line(done, "watch", daemon, "pods")},
		"other stages":   {log: line("ResponseStarted", "patch", daemon, "pods") + line("RequestReceived", "patch", daemon, "pods")},
		"reviews":        {log: line(done, "create", daemon, "tokenreviews") + line(done, "create", daemon, "subjectaccessreviews")},
		"half of a line": {log: `{"stage":"ResponseComplete","verb":"pat`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			writes, err := read(strings.NewReader(tc.log))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, write := range writes {
				got = append(got, write.String())
				if write.Namespace != "shop" || write.IsEvent() != strings.HasSuffix(write.String(), " events") {
					t.Errorf("%+v", write)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestABrokenLogIsRefused(t *testing.T) {
	t.Parallel()
	if writes, err := read(strings.NewReader("{\"stage\":\n")); err == nil {
		t.Errorf("got %v, want an error: a count of half a log proves nothing", writes)
	}
}
