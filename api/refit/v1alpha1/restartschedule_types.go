package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Kind and Resource of RestartSchedule, for a dynamic client or a RESTMapper.
const (
	KindRestartSchedule     = "RestartSchedule"
	ResourceRestartSchedule = "restartschedules"
)

// RestartSchedule creates RestartRollouts at the times of a cron expression, as a CronJob creates Jobs.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=refit
// +kubebuilder:printcolumn:name="KIND",type=string,JSONPath=`.spec.rolloutTemplate.spec.targetRef.kind`
// +kubebuilder:printcolumn:name="TARGET",type=string,JSONPath=`.spec.rolloutTemplate.spec.targetRef.name`
// +kubebuilder:printcolumn:name="SCHEDULE",type=string,JSONPath=`.spec.schedule`
// +kubebuilder:printcolumn:name="TIMEZONE",type=string,JSONPath=`.spec.timeZone`
// +kubebuilder:printcolumn:name="SUSPEND",type=boolean,JSONPath=`.spec.suspend`
// +kubebuilder:printcolumn:name="ACTIVE",type=string,JSONPath=`.status.active`
// +kubebuilder:printcolumn:name="LAST SCHEDULE",type=date,JSONPath=`.status.lastScheduleTime`
// +kubebuilder:printcolumn:name="READY",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="NEXT SCHEDULE",type=string,priority=1,JSONPath=`.status.nextScheduleTime`
// +kubebuilder:printcolumn:name="MESSAGE",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 180",message="metadata.name must be at most 180 characters, since the names of its RestartRollouts are made from it"
type RestartSchedule struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec RestartScheduleSpec `json:"spec"`
	// +optional
	Status RestartScheduleStatus `json:"status,omitzero"`
}

// RestartScheduleList is a list of schedules.
//
// +kubebuilder:object:root=true
type RestartScheduleList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []RestartSchedule `json:"items"`
}

// RestartScheduleSpec says when which RestartRollouts are created. The fields have the names of CronJob's.
type RestartScheduleSpec struct {
	// Schedule is a cron expression with five fields, such as "0 3 * * 1", or a name, such as "@daily".
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Schedule string `json:"schedule"`
	// TimeZone is the name of a time zone of the IANA database, such as "Europe/Paris".
	// +optional
	// +kubebuilder:default=UTC
	// +kubebuilder:validation:MaxLength=64
	TimeZone string `json:"timeZone,omitempty"`
	// StartingDeadlineSeconds is how late a rollout may be created. A time that was missed by more is skipped. If it is
	// unset, only the most recent missed time is used, however late.
	// +optional
	// +kubebuilder:validation:Minimum=10
	// +kubebuilder:validation:Maximum=2147483647
	StartingDeadlineSeconds *int64 `json:"startingDeadlineSeconds,omitempty"`
	// ConcurrencyPolicy says what happens if the previous rollout has not ended.
	// +optional
	// +kubebuilder:default=Forbid
	ConcurrencyPolicy ScheduleConcurrencyPolicy `json:"concurrencyPolicy,omitempty"`
	// Suspend creates no further rollouts. Existing ones continue.
	// +optional
	Suspend bool `json:"suspend,omitempty"`
	// SuccessfulRolloutsHistoryLimit is the number of succeeded rollouts that are kept.
	// +optional
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=0
	SuccessfulRolloutsHistoryLimit *int32 `json:"successfulRolloutsHistoryLimit,omitempty"`
	// FailedRolloutsHistoryLimit is the number of failed rollouts that are kept.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	FailedRolloutsHistoryLimit *int32 `json:"failedRolloutsHistoryLimit,omitempty"`
	// RolloutTemplate is the template of the rollouts.
	// +required
	RolloutTemplate RestartRolloutTemplate `json:"rolloutTemplate"`
}

// RestartRolloutTemplate is the template for the RestartRollouts of a schedule.
type RestartRolloutTemplate struct {
	// Metadata is added to the metadata of the rollouts. Of the annotations whose keys begin with refit.dev/, only refit.dev/reason is
	// used.
	// +optional
	Metadata RolloutTemplateMeta `json:"metadata,omitzero"`
	// +required
	Spec RestartRolloutSpec `json:"spec"`
}

// RolloutTemplateMeta is metadata of the rollouts.
type RolloutTemplateMeta struct {
	// Labels of the rollouts.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Labels map[string]string `json:"labels,omitempty"`
	// Annotations of the rollouts.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Annotations map[string]string `json:"annotations,omitempty"`
}

// ScheduleConcurrencyPolicy says what happens at a scheduled time if the previous rollout has not ended. There is no Allow
// as in CronJob: two concurrent rollouts of the same pods would not keep maxUnavailable.
//
// +kubebuilder:validation:Enum=Forbid;Replace
type ScheduleConcurrencyPolicy string

const (
	// ScheduleForbid creates the next rollout when the previous one has ended, if startingDeadlineSeconds allows it.
	ScheduleForbid ScheduleConcurrencyPolicy = "Forbid"
	// ScheduleReplace ends the previous rollout: it starts no further restarts, and is deleted when the restarts in
	// progress have ended.
	ScheduleReplace ScheduleConcurrencyPolicy = "Replace"
)

// RestartScheduleStatus lists what a schedule has created.
type RestartScheduleStatus struct {
	// ObservedGeneration is the generation of the spec that the status belongs to.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Active are the names of the rollouts that have not ended.
	// +optional
	// +listType=atomic
	Active []string `json:"active,omitempty"`
	// LastScheduleTime is the scheduled time of the last rollout.
	// +optional
	LastScheduleTime *metav1.Time `json:"lastScheduleTime,omitempty"`
	// NextScheduleTime is the next scheduled time; unset while the schedule is suspended or invalid.
	// +optional
	NextScheduleTime *metav1.Time `json:"nextScheduleTime,omitempty"`
	// LastSuccessfulTime is when a rollout last succeeded.
	// +optional
	LastSuccessfulTime *metav1.Time `json:"lastSuccessfulTime,omitempty"`
	// Conditions: Ready.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Reasons of condition Ready of a RestartSchedule. It is False if the schedule is invalid, or if the API server has refused
// the last rollout.
const (
	ReasonScheduled       = "Scheduled"
	ReasonSuspended       = "Suspended"
	ReasonInvalidSchedule = "InvalidSchedule"
	ReasonRolloutRefused  = "RolloutRefused"
)
