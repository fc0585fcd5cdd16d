package console

import (
	"slices"
	"strings"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
)

// KindName reads KIND/NAME, and returns the kind in lower case. It returns false for any other text.
func KindName(text string) (kind, name string, ok bool) {
	kind, name, ok = strings.Cut(text, "/")
	return strings.ToLower(kind), name, ok && name != "" && !strings.Contains(name, "/")
}

// IsPod reports whether a kind in lower case is a name that kubectl accepts for pods.
func IsPod(kind string) bool { return slices.Contains([]string{"pod", "pods", "po"}, kind) }

// IsKind reports whether a kind in lower case is one of the names that kubectl accepts for a kind of a group: NAME, NAME.GROUP as
// --output=name prints it, or NAME.VERSION.GROUP with any version.
func IsKind(kind, group string, names ...string) bool {
	name, of, grouped := strings.Cut(kind, ".")
	_, versioned, _ := strings.Cut(of, ".")
	return slices.Contains(names, name) && (!grouped || of == group || versioned == group)
}

// IsRequest is IsKind for ContainerRecreateRequests.
func IsRequest(kind string) bool {
	return IsKind(kind, v1beta1.Group, "containerrecreaterequest", "containerrecreaterequests", "crr")
}

// IsRestartRollout is IsKind for RestartRollouts.
func IsRestartRollout(kind string) bool {
	return IsKind(kind, v1alpha1.Group, "restartrollout", "restartrollouts", "rr")
}

// IsPolicy is IsKind for InPlaceUpdatePolicies.
func IsPolicy(kind string) bool {
	return IsKind(kind, v1alpha1.Group, "inplaceupdatepolicy", "inplaceupdatepolicies", "iup")
}

// IsSidecarSet is IsKind for SidecarSets.
func IsSidecarSet(kind string) bool {
	return IsKind(kind, v1beta1.Group, "sidecarset", "sidecarsets")
}
