package manager_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/refit-project/refit/manager"
)

// A selector that names no Namespace would inject where the user wants nothing.
func TestPoliciesAreNotCompiledForNamesThatNoNamespaceHas(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	err := manager.CompileSidecarSets(&out, strings.NewReader(""), []string{"-"}, "refit-system", []string{"shop", "pay_ments"}, time.Unix(1e9, 0))
	if err == nil || !strings.Contains(err.Error(), `--excluded-namespaces: "pay_ments" is not a valid name of a Namespace`) || out.Len() > 0 {
		t.Errorf("err = %v, out = %q", err, &out)
	}
}
