package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestWorkingSetIsWithoutInactiveFileCache(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		files map[string]string
		v2    bool
		want  uint64 // 0: an error
	}{
		"v1":            {map[string]string{"memory.usage_in_bytes": "1000\n", "memory.stat": "cache 1\ninactive_file 7\ntotal_inactive_file 300\n"}, false, 700},
		"v2":            {map[string]string{"memory.current": "1000\n", "memory.stat": "anon 1\ninactive_file 300\n"}, true, 700},
		"more inactive": {map[string]string{"memory.current": "1000\n", "memory.stat": "inactive_file 3000\n"}, true, 0},
		"no line":       {map[string]string{"memory.current": "1000\n", "memory.stat": "anon 3000\n"}, true, 0},
	} {
		folder := t.TempDir()
		for file, content := range tt.files {
			if err := os.WriteFile(filepath.Join(folder, file), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		got, err := workingSet(folder, tt.v2)
		if got != tt.want || (err != nil) != (name == "no line") {
			t.Errorf("%s: %d, %v; want %d", name, got, err, tt.want)
		}
	}
}
