package credentialprovider

import (
	"path"
	"strings"
)

// Matches reports whether an image, written with its registry, is one that the pattern is for. By kubelet's rule each label
// of the host may hold *, which matches no dot; the port has to be the same, and the path to begin the image's path.
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
