package v1beta1

// Labels, annotations, finalizers and readiness gates of ContainerRecreateRequest shared with OpenKruise.
const (
	// LabelPodUID holds the UID of the pod at admission. Immutable.
	LabelPodUID = "crr.apps.kruise.io/pod-uid"
	// LabelNodeName holds the node of the pod. A daemon selects the requests of its node by it. Immutable.
	LabelNodeName = "crr.apps.kruise.io/node-name"
	// LabelActive is "true" until the request is finished; daemons watch only active requests.
	LabelActive = "crr.apps.kruise.io/active"
	// FinalizerUnreadyAcquired keeps a request until the pod has been made ready again.
	FinalizerUnreadyAcquired = "crr.apps.kruise.io/unready-acquired"
	// AnnotationSyncContainerStatuses is status.containerStatusSnapshot for clients of v1alpha1 (JSON array).
	AnnotationSyncContainerStatuses = "crr.apps.kruise.io/sync-container-statuses"
	// AnnotationUnreadyAcquired is condition PreRecreateGrace for clients of v1alpha1 (RFC 3339 time). Immutable once set.
	AnnotationUnreadyAcquired = "crr.apps.kruise.io/unready-acquired"
	// ReadinessGateKruisePodReady lets a manager remove a pod from its Services.
	ReadinessGateKruisePodReady = "KruisePodReady"
)

// LabelReadinessGate on a namespace with the value "enabled" adds the readiness gate KruisePodReady to pods when they are
// created. If the webhook is for all namespaces, "disabled" excludes the namespace. The manifests of the webhook select by
// it.
const LabelReadinessGate = "refit.dev/readiness-gate"

// Annotations of Refit on a ContainerRecreateRequest.
const (
	// AnnotationRestartBackoff is "respect" or "skip": whether a requested restart waits for kubelet's crash back-off as
	// after a crash, or starts at once at the cost of `kubectl logs --previous`.
	AnnotationRestartBackoff = "refit.dev/restart-backoff"
	RestartBackoffRespect    = "respect"
	RestartBackoffSkip       = "skip"

	// AnnotationRestartPolicy set to "override" requests a restart even if the container's restartPolicy does not allow it:
	// the stopped instance is removed, which makes kubelet start it again. Refused if no other container keeps the pod
	// running.
	AnnotationRestartPolicy = "refit.dev/restart-policy"
	RestartPolicyOverride   = "override"

	// AnnotationAdmittedAt is the time of admission, RFC 3339 with nanoseconds. It orders requests created within the same
	// second, because creationTimestamp is in seconds.
	AnnotationAdmittedAt = "refit.dev/admitted-at"

	// AnnotationRequestedBy is the name of the user who created the request, recorded at admission.
	AnnotationRequestedBy = "refit.dev/requested-by"

	// AnnotationReason is an optional text with the user's reason, one line of at most MaxReason bytes.
	AnnotationReason = "refit.dev/reason"

	// AnnotationExpectedInstances is an optional JSON object from container name to container ID, as in the pod's status. The
	// request is refused as a conflict if a container has another instance when it is created.
	AnnotationExpectedInstances = "refit.dev/expected-instances"

	// AnnotationTraceparent is the trace that the request belongs to, as the header traceparent of W3C Trace Context. The
	// requester may set it; otherwise refit-manager sets it at admission, if the request is traced.
	AnnotationTraceparent = "refit.dev/traceparent"

	// AnnotationInstances records which container instances a request replaces, as a JSON object from container name to
	// container ID, and from "NAME/stopBegan" to the time. refit-daemon writes it before a stop, under a CRD without
	// status.containerRecreateStates[].containerID.
	AnnotationInstances = "refit.dev/instances"
)

// AnnotationNudge is written to a pod, through pods/status, to make kubelet sync it: its value has the name of the request
// and a counter.
const AnnotationNudge = "refit.dev/nudge"

// AnnotationDisruptionClaim is on a pod that a process takes out of service, or waits to, such as `kubectl refit set`: JSON
// with the process, the start and end of the claim, and whether it is its turn. It expires within a minute unless it is
// renewed.
const AnnotationDisruptionClaim = "refit.dev/disruption-claim"

// Condition types of ContainerRecreateRequest.
const (
	// ConditionAccepted is True once a refit-daemon, or a refit-sidecar in the pod, has accepted the request.
	ConditionAccepted = "Accepted"
	// ConditionSucceeded is True when every container has been recreated, False when the request ended in another way.
	ConditionSucceeded = "Succeeded"
	// ConditionFailed is True when the request ended and a container was not recreated, False when it succeeded.
	ConditionFailed = "Failed"
	// ConditionFinished is True when the request has ended with any outcome.
	ConditionFinished = "Finished"
	// ConditionComplete is the same as ConditionFinished, for clients that were written before that. Complete means success in a
	// Job.
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

// ConditionSidecarTerminated on a pod means that its main containers have ended and its sidecars are to be stopped. Such a
// pod may have a request although it is not active.
const ConditionSidecarTerminated = "SidecarTerminated"

// Variables of a container that let a sidecar end when the main containers have ended, in a pod with the restart policy
// Never or OnFailure, as in OpenKruise.
const (
	// EnvTerminateSidecar with the value "true" stops the container by a ContainerRecreateRequest.
	EnvTerminateSidecar = "KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT"
	// EnvTerminateSidecarWithImage is an image that replaces the container's own, and whose program ends at once: for
	// virtual nodes.
	EnvTerminateSidecarWithImage = "KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT_WITH_IMAGE"
	// PrefixSidecarTermination is followed by the UID of the pod in the name of such a request.
	PrefixSidecarTermination = "sidecar-termination-"
)

// Limits that the CRD sets too.
const (
	// MaxContainers bounds spec.containers: each one has a state with a message in status, and an object of the API has to
	// be smaller than 1.5 MB.
	MaxContainers = 256
	// MaxReason bounds AnnotationReason in bytes: it is repeated in Events, whose notes are limited to 1 KiB.
	MaxReason = 256
	// MinActiveDeadlineSeconds is the shortest activeDeadlineSeconds.
	MinActiveDeadlineSeconds = 3
	// MaxSeconds bounds every number of seconds, so that sums of a few do not overflow in nanoseconds.
	MaxSeconds = 1<<31 - 1
)
