package credentialprovider

import (
	"path"
	"strings"
)

// Matches reports whether the pattern matches an image with its registry. By kubelet's rule each label of the host may
// contain *, which does not match a dot. The ports must be equal, and the path must be a prefix of the image's path.
func Matches(pattern, image string) bool {
	for _, scheme := range []string{"https://", "http://"} {
		pattern = strings.TrimPrefix(pattern, scheme)
	}
	wantHost, wantPath, _ := strings.Cut(pattern, "/")
	host, rest, _ := strings.Cut(image, "/")
	wantHost, wantPort, _ := strings.Cut(wantHost, ":")
	host, port, _ := strings.Cut(host, ":")
	want, has := strings.Split(wantHost, "."), strings.Split(host, ".")
	if wantPort != port || len(want) != len(has) || !strings.HasPrefix(rest, wantPath) {
		return false
	}
	for i := range want {
		if ok, err := path.Match(want[i], has[i]); !ok || err != nil {
			return false
		}
	}
	return true
}
