package budget

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/foreign"
	"github.com/refit-project/refit/internal/must"
)

// ClaimFor is how long a claim lasts unless it is renewed. The claim of a process that has died delays others for this time.
const ClaimFor = time.Minute

// maxClaim limits the annotation, in bytes.
const maxClaim = 256

// Claim says that a process waits for its turn to make a pod unavailable, or has the turn. It is stored in the
// annotation [v1beta1.AnnotationDisruptionClaim]. Package turn decides about claims.
type Claim struct {
	// Since is when the process began to wait. The process that has waited the longest comes first.
	Since metav1.MicroTime `json:"since"`
	// Until is when the claim ends unless it is renewed.
	Until metav1.MicroTime `json:"until"`
	// By is the unique name of the process.
	By string `json:"by"`
	// Holding says that the process has its turn. The pod then counts as being changed.
	Holding bool `json:"holding,omitempty"`
}

// NewClaim returns the claim of a process that begins to wait.
func NewClaim(by string, now time.Time) Claim {
	return Claim{Since: metav1.NewMicroTime(now), By: by}.Renewed(now)
}

// Renewed returns the claim with a later end.
func (c Claim) Renewed(now time.Time) Claim {
	c.Until = metav1.NewMicroTime(now.Add(ClaimFor))
	return c
}

// String returns the value of the annotation.
func (c Claim) String() string {
	return string(must.JSON(c))
}

// ClaimOn returns the claim on a pod, or nil if there is none, if it has ended, if it is unreadable, or if it lasts
// longer than a claim may. So an annotation written by somebody else does not delay anybody for long.
func ClaimOn(pod metav1.Object, now time.Time) *Claim {
	text, ok := pod.GetAnnotations()[v1beta1.AnnotationDisruptionClaim]
	if !ok || len(text) > maxClaim {
		return nil
	}
	var c Claim
	if err := foreign.JSON(text, &c); err != nil || !now.Before(c.Until.Time) || c.Until.After(now.Add(2*ClaimFor)) {
		return nil
	}
	return &c
}
