package v1beta1

// SidecarSetInjectRevision selects a ControllerRevision of the SidecarSet. RevisionName takes precedence.
//
// +kubebuilder:validation:XValidation:rule="has(self.customVersion) && size(self.customVersion) > 0 || has(self.revisionName) && size(self.revisionName) > 0",message="revisionName or customVersion is required"
type SidecarSetInjectRevision struct {
	// CustomVersion of the revision; the newest one with it is used.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	CustomVersion *string `json:"customVersion,omitempty"`
	// RevisionName is the name of a ControllerRevision of this SidecarSet.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	RevisionName *string `json:"revisionName,omitempty"`
	// Policy is Always (default): all new pods get this revision; or Partial: pods that updateStrategy.selector selects,
	// or without it a part of the pods according to updateStrategy.partition, get the latest.
	// +optional
	// +kubebuilder:default=Always
	Policy InjectRevisionPolicy `json:"policy,omitempty"`
	// MissingPolicy says what new pods get if there is no such revision: Latest (default), Skip: no sidecars, or Fail: they
	// are refused. If it is set, a revision that does not exist may be named. Not part of OpenKruise's API, where pods are
	// refused.
	// +optional
	MissingPolicy MissingRevisionPolicy `json:"missingPolicy,omitempty"`
}

// InjectRevisionPolicy is Always or Partial.
//
// +kubebuilder:validation:Enum=Always;Partial;""
type InjectRevisionPolicy string

// Values of InjectRevisionPolicy.
const (
	RevisionAlways  InjectRevisionPolicy = "Always"
	RevisionPartial InjectRevisionPolicy = "Partial"
)

// MissingRevisionPolicy is Latest, Skip or Fail.
//
// +kubebuilder:validation:Enum=Latest;Skip;Fail;""
type MissingRevisionPolicy string

// Values of MissingRevisionPolicy.
const (
	MissingLatest MissingRevisionPolicy = "Latest"
	MissingSkip   MissingRevisionPolicy = "Skip"
	MissingFail   MissingRevisionPolicy = "Fail"
)
