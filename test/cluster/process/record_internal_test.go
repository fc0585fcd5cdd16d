package process

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestParseStat(t *testing.T) {
	t.Parallel()
	const tail = " S 1 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4711 0 0"
	tests := map[string]struct {
		stat    string
		started uint64
		wantErr bool
	}{
		"plain":                     {stat: "7 (etcd)" + tail, started: 4711},
		"parentheses in the name":   {stat: "7 (a) S 1 (b)" + tail, started: 4711},
		"no name":                   {stat: "7 etcd", wantErr: true},
		"empty":                     {stat: "", wantErr: true},
		"start time not a number":   {stat: "7 (etcd)" + strings.Replace(tail, "4711", "x", 1), wantErr: true},
		"cut before the start time": {stat: "7 (etcd) S 1 7 7", wantErr: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			started, state, err := parseStat(test.stat)
			if (err != nil) != test.wantErr {
				t.Fatalf("parseStat: error %v, want one: %t", err, test.wantErr)
			}
			if err == nil && (started != test.started || state != "S") {
				t.Errorf("parseStat = %d, %q; want %d, S", started, state, test.started)
			}
		})
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add("7 (etcd) S 1 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4711 0 0")
	f.Fuzz(func(t *testing.T, stat string) {
		if _, state, err := parseStat(stat); err == nil && state == "" {
			t.Error("no state and no error")
		}
	})
}

func TestProcessWithAReusedPIDIsAnother(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "self.json")
	record, err := recordOf(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		record Record
		want   bool
	}{
		"the process itself":         {record: record, want: true},
		"another of the same number": {record: Record{PID: record.PID, StartTime: record.StartTime + 1, Boot: record.Boot}},
		"of another boot":            {record: Record{PID: record.PID, StartTime: record.StartTime, Boot: "x"}},
		"init is never ours":         {record: Record{PID: 1}},
	} {
		if err := test.record.write(path); err != nil {
			t.Fatal(err)
		}
		if _, alive := Alive(path); alive != test.want {
			t.Errorf("%s: alive = %t, want %t", name, alive, test.want)
		}
	}
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, alive := Alive(path); alive {
		t.Error("half a record is alive")
	}
}
