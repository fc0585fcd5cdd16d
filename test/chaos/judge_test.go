package chaos_test

import (
	"errors"
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/refit-project/refit/test/chaos"
)

func TestAFolderWithoutRecordsIsAnError(t *testing.T) {
	t.Parallel()
	for _, folder := range []string{t.TempDir(), filepath.Join(t.TempDir(), "missing")} {
		if _, err := chaos.Judge(folder); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", folder, err)
		}
	}
}
