package apiserver

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReadyNodes(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		list    string
		want    []string
		wantErr bool
	}{
		"only the ready ones": {
			list: `{"items":[
				{"metadata":{"name":"node-1"},"status":{"conditions":[{"type":"MemoryPressure","status":"False"},{"type":"Ready","status":"True"}]}},
				{"metadata":{"name":"node-2"},"status":{"conditions":[{"type":"Ready","status":"Unknown"}]}},
				{"metadata":{"name":"node-3"},"status":{"conditions":[{"type":"DiskPressure","status":"True"}]}}]}`,
			want: []string{"node-1"},
		},
		"none":     {list: `{}`},
		"not JSON": {list: `no`, wantErr: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := readyNodes([]byte(test.list))
			if (err != nil) != test.wantErr {
				t.Fatalf("error %v, want one: %t", err, test.wantErr)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("ready nodes (-want +got):\n%s", diff)
			}
		})
	}
}
