package v1beta1

// Labels, annotations, finalizers and readiness gates of ContainerRecreateRequest shared with OpenKruise.
const (
	// LabelPodUID holds the UID of the pod at admission. Immutable.
	LabelPodUID = "crr.apps.kruise.io/pod-uid"
	// LabelNodeName holds the node of the pod; a daemon watches the requests of its node by it. Immutable.
	LabelNodeName = "crr.apps.kruise.io/node-name"
	// LabelActive is "true" until the request is finished; daemons watch only active requests.
	LabelActive = "crr.apps.kruise.io/active"
	// FinalizerUnreadyAcquired keeps a request until the pod has been made ready again.
	FinalizerUnreadyAcquired = "crr.apps.kruise.io/unready-acquired"
	// AnnotationSyncContainerStatuses is status.containerStatusSnapshot for clients of v1alpha1 (JSON array).
	AnnotationSyncContainerStatuses = "crr.apps.kruise.io/sync-container-statuses"
	// AnnotationUnreadyAcquired is condition PreRecreateGrace for clients of v1alpha1 (RFC 3339 time). Immutable once set.
	AnnotationUnreadyAcquired = "crr.apps.kruise.io/unready-acquired"
	// ReadinessGateKruisePodReady lets a manager take a pod out of its Services.
	ReadinessGateKruisePodReady = "KruisePodReady"
)

// Annotations of Refit on a ContainerRecreateRequest.
const (
	// AnnotationRestartBackoff is "respect" or "skip": whether a requested restart waits for kubelet's
	// crash back-off like a crash would, or starts at once at the cost of `kubectl logs --previous`.
	AnnotationRestartBackoff = "refit.dev/restart-backoff"
	RestartBackoffRespect    = "respect"
	RestartBackoffSkip       = "skip"

	// AnnotationRestartPolicy set to "override" asks for a restart although the container's restartPolicy
	// forbids it: the stopped instance is removed, which makes kubelet start it again. Refused where no other container keeps the pod running.
	AnnotationRestartPolicy = "refit.dev/restart-policy"
	RestartPolicyOverride   = "override"

	// AnnotationAdmittedAt is the time of admission, RFC 3339 with nanoseconds; it orders requests created
	// within one second, which is all that creationTimestamp resolves.
	AnnotationAdmittedAt = "refit.dev/admitted-at"

	// AnnotationRequestedBy is the name of the user who created the request, recorded at admission.
	AnnotationRequestedBy = "refit.dev/requested-by"

	// AnnotationReason is an optional text by which the user says why, at most MaxReason bytes in one line.
	AnnotationReason = "refit.dev/reason"

	// AnnotationExpectedInstances is an optional JSON object from container name to container ID, as in the pod's status. The
	// request is refused as a conflict if a container has another instance when it is created.
	AnnotationExpectedInstances = "refit.dev/expected-instances"

	// AnnotationTraceparent is the trace that the request belongs to, as the header traceparent of W3C Trace Context. The
	// requester may set it; else refit-manager does at admission, if the request is traced.
	AnnotationTraceparent = "refit.dev/traceparent"

	// AnnotationInstances records which container instances a request replaces, as a JSON object from container name to
	// container ID; the value of "NAME/stopBegan" is when the stop of container NAME began. refit-daemon writes it, before it stops anything, where the CRD has no
	// status.containerRecreateStates[].containerID, as that of OpenKruise.
	AnnotationInstances = "refit.dev/instances"
)

// AnnotationNudge is written to a pod, through pods/status, to wake kubelet: its value names the request and
// counts its nudges.
const AnnotationNudge = "refit.dev/nudge"

// AnnotationDisruptionClaim is on a pod that a process waits to take out of service, or takes out, as `kubectl refit set` does: JSON
// with who, since when and until when, and whether it is its turn. It ends by itself within a minute unless it is renewed.
const AnnotationDisruptionClaim = "refit.dev/disruption-claim"

// Condition types of ContainerRecreateRequest.
const (
	// ConditionAccepted is True once a refit-daemon, or a refit-sidecar in the pod, has taken the request.
	ConditionAccepted = "Accepted"
	// ConditionSucceeded is True when every container has been recreated, False when the request ended otherwise.
	ConditionSucceeded = "Succeeded"
	// ConditionFailed is True when the request ended and a container was not recreated, False when it succeeded.
	ConditionFailed = "Failed"
	// ConditionComplete is True when the request has ended, whatever the outcome.
	ConditionComplete = "Complete"
	// ConditionPreRecreateGrace is True, since its lastTransitionTime, when the manager has made the pod not ready.
	ConditionPreRecreateGrace = "PreRecreateGrace"
)

// Reason and message of condition PreRecreateGrace.
const (
	ReasonPreRecreateGrace  = "PreRecreateGrace"
	MessagePreRecreateGrace = "Pod has been forced to not-ready for unreadyGracePeriodSeconds drain"
)

// LabelType with value TypeVirtualKubelet marks nodes without a host of their own, and the requests for their pods.
const (
	LabelType          = "type"
	TypeVirtualKubelet = "virtual-kubelet"
)

// ConditionSidecarTerminated on a pod says that its main containers have ended and its sidecars are to be stopped;
// such a pod may be the subject of a request although it is not active.
const ConditionSidecarTerminated = "SidecarTerminated"

// Bounds that the CRD sets too.
const (
	// MaxContainers bounds spec.containers: every one has a state with a message in status, and an object of the
	// API has to stay below 1.5 MB.
	MaxContainers = 256
	// MaxReason bounds AnnotationReason in bytes: it is repeated in Events, whose notes are limited to 1 KiB.
	MaxReason = 256
	// MinActiveDeadlineSeconds is the shortest activeDeadlineSeconds.
	MinActiveDeadlineSeconds = 3
	// MaxSeconds bounds every number of seconds: far enough from overflow in nanoseconds for sums of a few.
	MaxSeconds = 1<<31 - 1
)
