// Package requester formats who created a request. The text is safe for Events and logs.
package requester

import (
	"fmt"
	"log/slog"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/foreign"
)

// Clause returns a clause for Events that says who created a request and why, for example "requested by alice: node
// pressure". It is empty if that was not recorded because a kruise-manager admitted the request.
func Clause(request *v1beta1.ContainerRecreateRequest) string {
	user := Printable(request.Annotations[v1beta1.AnnotationRequestedBy])
	if user == "" {
		return ""
	}
	if reason := Printable(request.Annotations[v1beta1.AnnotationReason]); reason != "" {
		return fmt.Sprintf("requested by %s: %s", user, reason)
	}
	return "requested by " + user
}

// LogAttributes returns log attributes that say who created the request and why; they are empty if that was not recorded.
func LogAttributes(request *v1beta1.ContainerRecreateRequest) slog.Attr {
	var known []any
	for _, of := range [][2]string{{"requestedBy", v1beta1.AnnotationRequestedBy}, {"reason", v1beta1.AnnotationReason}} {
		if text := Printable(request.Annotations[of[1]]); text != "" {
			known = append(known, slog.String(of[0], text))
		}
	}
	return slog.Group("", known...) // the attributes of a group without a name belong to the line
}

// Printable returns the text without characters that could forge log lines, at most MaxReason bytes long.
func Printable(text string) string {
	return foreign.Cut(foreign.Printable(text), v1beta1.MaxReason)
}
