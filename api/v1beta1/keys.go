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
	// AnnotationSyncContainerStatuses is the v1alpha1 form of status.containerStatusSnapshot (JSON array).
	AnnotationSyncContainerStatuses = "crr.apps.kruise.io/sync-container-statuses"
	// AnnotationUnreadyAcquired is the v1alpha1 form of condition PreRecreateGrace (RFC 3339 time).
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
	// forbids it: the stopped instance is removed, which makes kubelet start it again.
	AnnotationRestartPolicy = "refit.dev/restart-policy"
	RestartPolicyOverride   = "override"

	// AnnotationAdmittedAt is the time of admission, RFC 3339 with nanoseconds; it orders requests created
	// within one second, which is all that creationTimestamp resolves.
	AnnotationAdmittedAt = "refit.dev/admitted-at"
)

// AnnotationNudge is written to a pod, through pods/status, to wake kubelet: its value names the request and
// counts its nudges.
const AnnotationNudge = "refit.dev/nudge"

// Condition types of ContainerRecreateRequest.
const (
	// ConditionAccepted is True once a refit-daemon has taken the request.
	ConditionAccepted = "Accepted"
	// ConditionSucceeded is True when every container has been recreated, False when the request ended otherwise.
	ConditionSucceeded = "Succeeded"
	// ConditionFailed is True when the request ended and a container was not recreated, False when it succeeded.
	ConditionFailed = "Failed"
	// ConditionPreRecreateGrace is True, since its lastTransitionTime, when the manager has made the pod not ready.
	ConditionPreRecreateGrace = "PreRecreateGrace"
)

// Reasons of the conditions Succeeded and Failed that more than one program writes. The reason of Succeeded is
// also the RESULT column of kubectl get, so a reason is one word that says how the request ended.
const (
	// ReasonSucceeded: every container was recreated.
	ReasonSucceeded = "Succeeded"
	// ReasonContainerFailed: a container could not be stopped or did not come back; its state says why.
	ReasonContainerFailed = "ContainerFailed"
	// ReasonDeadlineExceeded: activeDeadlineSeconds passed.
	ReasonDeadlineExceeded = "DeadlineExceeded"
	// ReasonPodGone: the pod was deleted or replaced by another one of its name.
	ReasonPodGone = "PodGone"
	// ReasonNodeGone: the node the pod was bound to does not exist any more.
	ReasonNodeGone = "NodeGone"
	// ReasonDaemonNotResponding: no daemon on the pod's node took the request.
	ReasonDaemonNotResponding = "DaemonNotResponding"
	// ReasonInvalid: the request did not pass admission and must not be carried out.
	ReasonInvalid = "Invalid"
	// ReasonRestartPolicyForbidsRestart: the restart policy keeps kubelet from starting the container again.
	ReasonRestartPolicyForbidsRestart = "RestartPolicyForbidsRestart"
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

// AnnotationConditions is the v1alpha1 form of status.conditions (JSON array), which v1alpha1 does not have.
const AnnotationConditions = "refit.dev/conditions"

// MaxConditions bounds status.conditions, so that they fit into AnnotationConditions.
const MaxConditions = 32
