package hotupdate

import (
	"fmt"
	"strings"

	"github.com/refit-project/refit/hotupdate/manifest"
)

// checkCandidate compares the new files with what the request says about them, and with the files in force.
func checkCandidate(req Request, current, next Revision, lineage manifest.Requested) error {
	if req.Digest != "" && req.Digest != lineage.Digest {
		return fmt.Errorf("%w: the set of files has %s, want %s", ErrDigest, lineage.Digest, req.Digest)
	}
	if req.DistinctVersion && next.Version == current.Version && next.Digest != current.Digest {
		return fmt.Errorf("%w: version %q is in force with other content, and verify compares only versions: send the files with another version", ErrInvalid, next.Version)
	}
	return nil
}

// alreadyCurrent reports whether current is what req asks for, as far as that is known without fetching.
func alreadyCurrent(current Revision, req Request) bool {
	if current.Version != req.Version || len(current.Sources) != len(req.Sources) || current.Kept && !req.Keep {
		return false
	}
	for i, s := range req.Sources {
		if o := current.Sources[i]; s.SHA256 == "" || s.Mode != 0 || !strings.EqualFold(s.SHA256, o.SHA256) || s.Path() != o.Name || s.Format != o.Format {
			return false
		}
	}
	return true
}
