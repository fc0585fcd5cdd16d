package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Kind and Resource of RestartTrigger, for a dynamic client or a RESTMapper.
const (
	KindRestartTrigger     = "RestartTrigger"
	ResourceRestartTrigger = "restarttriggers"
)

// Annotations of a Deployment, StatefulSet or DaemonSet whose containers are restarted when a ConfigMap or Secret that they
// use has changed.
const (
	// AnnotationRestartOnConfigChange has the names of the containers, separated by commas.
	AnnotationRestartOnConfigChange = "refit.dev/restart-on-config-change"
	// AnnotationRestartMaxUnavailable is maxUnavailable of the RestartRollouts; default 1.
	AnnotationRestartMaxUnavailable = "refit.dev/restart-max-unavailable"
	// AnnotationRestartPaused with the value true creates the RestartRollouts paused: nothing is restarted before somebody resumes them.
	AnnotationRestartPaused = "refit.dev/restart-paused"
	// AnnotationRestartWindow is when a window begins in which RestartRollouts are created, as the schedule of a CronJob; default: always.
	AnnotationRestartWindow = "refit.dev/restart-window"
	// AnnotationRestartWindowDuration is the length of the window, from 1m to 168h; required with a window.
	AnnotationRestartWindowDuration = "refit.dev/restart-window-duration"
	// AnnotationRestartWindowTimeZone is the time zone of the window, as Europe/Paris; default UTC.
	AnnotationRestartWindowTimeZone = "refit.dev/restart-window-time-zone"
)

// RestartTriggerAnnotations returns all annotations of a workload that a RestartTrigger depends on.
func RestartTriggerAnnotations() []string {
	return []string{
		AnnotationRestartOnConfigChange, AnnotationRestartMaxUnavailable, AnnotationRestartPaused,
		AnnotationRestartWindow, AnnotationRestartWindowDuration, AnnotationRestartWindowTimeZone,
	}
}

// AnnotationConfigRefresh is written to pods whose volumes contain a changed ConfigMap or Secret, so that kubelet updates
// the volumes now. Its value is the name of the RestartRollout that follows.
const AnnotationConfigRefresh = "refit.dev/config-refresh"

// RestartTrigger is refit-manager's record of a workload with the annotation refit.dev/restart-on-config-change: the
// ConfigMaps and Secrets that its containers use, with digests of the contents for which they were last restarted.
// refit-manager creates and deletes it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=refit
// +kubebuilder:printcolumn:name="KIND",type=string,JSONPath=`.spec.targetRef.kind`
// +kubebuilder:printcolumn:name="TARGET",type=string,JSONPath=`.spec.targetRef.name`
// +kubebuilder:printcolumn:name="READY",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="REASON",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="ROLLOUTS",type=integer,JSONPath=`.status.rollouts`
// +kubebuilder:printcolumn:name="LAST",type=string,JSONPath=`.status.lastRollout`
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="MESSAGE",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type RestartTrigger struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec RestartTriggerSpec `json:"spec"`
	// +optional
	Status RestartTriggerStatus `json:"status,omitzero"`
}

// RestartTriggerList is a list of triggers.
//
// +kubebuilder:object:root=true
type RestartTriggerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []RestartTrigger `json:"items"`
}

// RestartTriggerSpec names the workload.
type RestartTriggerSpec struct {
	// +required
	TargetRef WorkloadReference `json:"targetRef"`
}

// RestartTriggerStatus is the known configuration of a workload.
type RestartTriggerStatus struct {
	// ObservedGeneration is the generation of the spec that the status belongs to.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Objects that the containers use, with the contents for which they were last restarted, or which were found first.
	// +optional
	// +listType=atomic
	Objects []ConfigObject `json:"objects,omitempty"`
	// Pending is a change for which the containers have to be restarted.
	// +optional
	Pending *ConfigChange `json:"pending,omitempty"`
	// Rollouts is the number of RestartRollouts that have been created. The name of the next one is derived from it, so that a
	// change is not restarted twice.
	// +optional
	Rollouts int64 `json:"rollouts"`
	// LastRollout is the name of the last one.
	// +optional
	LastRollout string `json:"lastRollout,omitempty"`
	// Conditions: Ready.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ConfigObject is a ConfigMap or a Secret with a version of its content.
type ConfigObject struct {
	// Kind is ConfigMap or Secret.
	// +required
	Kind string `json:"kind"`
	// Name of the ConfigMap or Secret.
	// +required
	Name string `json:"name"`
	// ResourceVersion in which the content was last read. Empty while the object does not exist.
	// +optional
	ResourceVersion string `json:"resourceVersion,omitempty"`
	// Digest of the content: SHA-256 for a ConfigMap, PBKDF2 with the UID of the RestartTrigger as salt for a Secret. Empty
	// if the object did not exist.
	// +optional
	Digest string `json:"digest,omitempty"`
	// Immutable is true if the object was immutable when it was last read.
	// +optional
	Immutable bool `json:"immutable,omitempty"`
}

// ConfigChange is a change of ConfigMaps and Secrets for which the containers have not been restarted.
type ConfigChange struct {
	// Digest of all contents; another change has another digest.
	// +required
	Digest string `json:"digest"`
	// Time when the change was found.
	// +required
	Time metav1.Time `json:"time"`
	// RefreshTime is when refit-manager made kubelet update the volumes of the pods.
	// +optional
	RefreshTime *metav1.Time `json:"refreshTime,omitempty"`
}

// ConditionReady of a RestartTrigger means that the annotations are valid, and that the objects have been read. For a
// RestartSchedule see ReasonScheduled.
const ConditionReady = "Ready"

// Reasons of condition Ready of a RestartTrigger.
const (
	ReasonWatching          = "Watching"
	ReasonPending           = "ChangePending"
	ReasonInvalidAnnotation = "InvalidAnnotation"
	// ReasonImmutableReplaced means that an immutable ConfigMap or Secret was deleted and created again with another
	// content. Nothing is restarted, because kubelet keeps the earlier content.
	ReasonImmutableReplaced = "ImmutableReplaced"
)
