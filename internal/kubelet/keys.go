package kubelet

// Labels that kubelet sets on every pod sandbox and container it creates through CRI (kubelet, pkg/types/labels.go).
const (
	LabelPodName       = "io.kubernetes.pod.name"
	LabelPodNamespace  = "io.kubernetes.pod.namespace"
	LabelPodUID        = "io.kubernetes.pod.uid"
	LabelContainerName = "io.kubernetes.container.name" // on containers only
)

// Annotations that kubelet sets on every container it creates through CRI (kubelet, kuberuntime/labels.go).
const (
	AnnotationContainerHash  = "io.kubernetes.container.hash"           // see ContainerHash
	AnnotationRestartCount   = "io.kubernetes.container.restartCount"   // decimal
	AnnotationPreStopHandler = "io.kubernetes.container.preStopHandler" // a corev1.LifecycleHandler as JSON; absent without a hook
)
