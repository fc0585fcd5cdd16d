package budget

import (
	"encoding/json"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
)

// ClaimFor is how long a claim lasts unless it is renewed. One of a process that has died delays others for as long.
const ClaimFor = time.Minute

// maxClaim bounds the annotation, in bytes.
const maxClaim = 256

// Claim says that a process waits for its turn to take a pod out of service, or has it: the annotation
// [v1beta1.AnnotationDisruptionClaim]. Package turn decides about them.
type Claim struct {
	// Since is when the process began to wait: the first is served first.
	Since metav1.MicroTime `json:"since"`
	// Until is when it ends unless it is renewed.
	Until metav1.MicroTime `json:"until"`
	// By is a name that no other process has.
	By string `json:"by"`
	// Holding says that it is the turn of the process: the pod is under way.
	Holding bool `json:"holding,omitempty"`
}

// NewClaim is that of a process that begins to wait.
func NewClaim(by string, now time.Time) Claim {
	return Claim{Since: metav1.NewMicroTime(now), By: by}.Renewed(now)
}

// Renewed lasts longer.
func (c Claim) Renewed(now time.Time) Claim {
	c.Until = metav1.NewMicroTime(now.Add(ClaimFor))
	return c
}

// String is the annotation.
func (c Claim) String() string {
	text, err := json.Marshal(c)
	if err != nil {
		panic(err) // strings and times can always be encoded
	}
	return string(text)
}

// ClaimOn is the claim on a pod; nil if there is none, if it has ended, or if it cannot be read or says that it lasts longer than a
// claim may: what others have written there holds up nobody for long.
func ClaimOn(pod metav1.Object, now time.Time) *Claim {
	text, ok := pod.GetAnnotations()[v1beta1.AnnotationDisruptionClaim]
	if !ok || len(text) > maxClaim {
		return nil
	}
	var c Claim
	if err := json.Unmarshal([]byte(text), &c); err != nil || !now.Before(c.Until.Time) || c.Until.After(now.Add(2*ClaimFor)) {
		return nil
	}
	return &c
}
