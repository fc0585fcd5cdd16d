package inplace

import (
	"slices"
	"strings"
	"time"

	"github.com/distribution/reference"
	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/inplace/facts"
	"github.com/refit-project/refit/inplace/plan"
	"github.com/refit-project/refit/kubelet"
)

// begun is nil if everything that has been written to the pod has taken effect. Otherwise it is a step, or what is waited for; only
// if there is neither, what is stuck: first a container, then the resize.
func (v *view) begun() *Decision {
	var stuck *Decision
	look := func(d *Decision) *Decision {
		if d == nil || d.Kind != KindBlocked {
			return d
		}
		if stuck == nil || v.idle(stuck) {
			stuck = d
		}
		return nil
	}
	if v.record.State.UpdateResources && !v.resizePending() {
		if d := look(v.resized()); d != nil {
			return d
		}
	}
	for _, containers := range [][]corev1.Container{v.pod.Spec.InitContainers, v.pod.Spec.Containers} {
		for i := range containers {
			if d := look(v.container(&containers[i])); d != nil {
				return d
			}
		}
	}
	return stuck
}

// resizePending reports whether resources are still to be written; what kubelet says of those before does not matter then.
func (v *view) resizePending() bool {
	return slices.ContainsFunc(v.record.Remaining(v.pod).Containers, func(c plan.Change) bool { return c.Resources != nil })
}

// container is nil if the container is not part of what has been begun, or runs with what it was given, or is to be given
// something else: an image that cannot be pulled does not stand in the way of the next.
func (v *view) container(container *corev1.Container) *Decision {
	state := &v.record.State
	_, imagePending := state.NextContainerImages[container.Name]
	_, metadataPending := state.NextContainerRefMetadata[container.Name]
	if imagePending || metadataPending {
		return nil
	}
	_, imageChanged := state.LastContainerStatuses[container.Name]
	envChanged := state.UpdateEnvFromMetadata && len(facts.MetadataEnvs(container)) > 0 && v.envBegun(container.Name)
	if !imageChanged && !envChanged {
		return nil
	}
	status := kubelet.StatusOf(v.pod, container.Name)
	if status == nil {
		return wait(container.Name, "waiting for kubelet to report container %s", container.Name)
	}
	if !v.observed() {
		return wait(container.Name, "waiting for kubelet to see the change of container %s", container.Name)
	}
	if imageChanged && !v.hasImage(container, status) || status.State.Running == nil {
		if d := v.hindered(status); d != nil {
			return d
		}
		d := wait(container.Name, "waiting for kubelet to start container %s with %s", container.Name, container.Image)
		d.Again = v.unlessSameDigest(container, status)
		return d
	}
	if envChanged {
		return v.environment(container, status)
	}
	return nil
}

// envBegun reports whether new metadata has been written for the container. OpenKruise's records do not always name it.
func (v *view) envBegun(name string) bool {
	return slices.Contains(v.changed(), name) || v.record.State.Refit == nil && len(v.record.State.ContainerBatchesRecord) == 0
}

// observed reports whether kubelet has begun to act on the spec as it is. That its status describes the outcome does not
// follow (KEP-5067). Before Kubernetes 1.33 kubelet does not say.
func (v *view) observed() bool {
	return v.pod.Status.ObservedGeneration == 0 || v.pod.Status.ObservedGeneration >= v.pod.Generation
}

// hasImage reports whether the instance in the status was created from the image in the spec.
//
// The node's facts decide if they are about this instance. While they are late, an instance of another image ID than the
// recorded one has to show the name or the digest in the spec: kubelet may have started it with an image that was in the spec
// for a moment, and stops it again. Where there are no facts any other image ID will do, as the runtime may show another name of
// the image; or the very name in the spec, as different names of one image have the same ID. That
// second rule is wrong for a moment when an instance of the old image crashes and starts again before kubelet has seen the
// new spec, and both images are the same: then nothing of the image is out of date. It is not used where there are facts.
func (v *view) hasImage(container *corev1.Container, status *corev1.ContainerStatus) bool {
	hashes, known := v.facts.Of(status)
	if known && hashes.PlainHash != 0 {
		return facts.SameHash(hashes, container)
	}
	was := v.record.Extension().Instances[container.Name]
	if was.ContainerID != "" && was.ContainerID == status.ContainerID {
		return was.Image == container.Image // the image was changed back before kubelet replaced the instance
	}
	if status.ImageID == "" {
		return false
	}
	switch another := status.ImageID != v.record.State.LastContainerStatuses[container.Name].ImageID; {
	case another && !v.reported():
		return true
	case v.reported():
		return another && (sameImageName(status.Image, container.Image) || sameImageDigest(status.ImageID, container.Image))
	}
	at := v.unlessSameDigest(container, status)
	return sameImageName(status.Image, container.Image) || !at.IsZero() && !v.now.Before(at)
}

// reported reports whether a daemon of the pod's node reports facts. It may not have reported a container yet, as one that has crashed.
func (v *view) reported() bool { return len(v.facts) > 0 }

// settleMargin is how much longer than its grace period kubelet may take to stop a container.
const settleMargin = 10 * time.Second

// unlessSameDigest is when another instance than the recorded one, of the recorded image ID, is taken for one of the new image
// although nothing names it: two tags are one digest, and the runtime shows the old one. An instance of the old image, which
// crashed and was started again just before kubelet saw the new spec, would have been stopped by then. It is zero where
// that does not apply: there are facts, or it is the recorded instance.
func (v *view) unlessSameDigest(container *corev1.Container, status *corev1.ContainerStatus) time.Time {
	was, recorded := v.record.Extension().Instances[container.Name]
	if v.reported() || !recorded || was.ContainerID == status.ContainerID || status.State.Running == nil {
		return time.Time{}
	}
	grace := corev1.DefaultTerminationGracePeriodSeconds * time.Second
	if seconds := v.pod.Spec.TerminationGracePeriodSeconds; seconds != nil {
		grace = time.Duration(*seconds) * time.Second
	}
	// kubelet stops the containers of a pod one after another.
	stops := time.Duration(len(v.pod.Spec.Containers) + len(v.pod.Spec.InitContainers))
	return v.written(container.Name).Add(stops*grace + settleMargin)
}

// sameImageName compares names after completing them as the runtime does.
func sameImageName(a, b string) bool {
	left, errLeft := reference.ParseNormalizedNamed(a)
	right, errRight := reference.ParseNormalizedNamed(b)
	return errLeft == nil && errRight == nil && reference.TagNameOnly(left).String() == reference.TagNameOnly(right).String()
}

// sameImageDigest reports whether an image is named by the digest that its ID has.
func sameImageDigest(id, image string) bool {
	named, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		return false
	}
	digested, ok := named.(reference.Digested)
	return ok && strings.HasSuffix(id, digested.Digest().String())
}

// environment is nil if the running instance was started after the metadata was written. Otherwise the instance is to be
// stopped, once kubelet has the metadata and the pod is drained: by the daemon of the node, which does so by itself while the
// pod is drained, or by request. Without the node's
// facts any other instance counts, also one that crashed and started again before kubelet had seen the new metadata.
func (v *view) environment(container *corev1.Container, status *corev1.ContainerStatus) *Decision {
	hashes, known := v.facts.Of(status)
	was, recorded := v.record.Extension().Instances[container.Name]
	replaced := recorded && was.ContainerID != status.ContainerID
	known = known && hashes.ExtractedEnvFromMetadataHash != 0
	switch {
	case known && hashes.ExtractedEnvFromMetadataHash == facts.ExpectedEnvHash(container, v.pod):
		return nil
	case known:
	case replaced:
		return nil
	case !recorded:
		return wait(container.Name, "waiting for the node's daemon to report the environment of container %s", container.Name)
	}
	if observed := v.metadataObserved(container.Name); v.now.Before(observed) {
		d := wait(container.Name, "waiting for kubelet to observe the new metadata before container %s is restarted", container.Name)
		d.Again = observed
		return d
	}
	if d := v.drained(); d != nil {
		return d
	}
	if meta, reported := v.facts[container.Name]; v.enforced() && (known || reported && meta.ContainerID != status.ContainerID) {
		// A request as well could come when the daemon has restarted the container, and restart it a second time.
		return wait(container.Name, "waiting for the node's daemon to restart container %s with its new environment", container.Name)
	}
	return step(v.restart(container.Name, status.ContainerID))
}

// metadataDelay is from the write of metadata to the restart of a container that takes its environment from it. kubelet does
// not report which metadata it has observed (observedGeneration counts changes of the spec only), and a sync of the pod
// that began before the write, and that may wait a second for kubelet's next look at the runtime, would start the container
// with the old environment. It is a little more than the time after which the node's daemon stops containers, or the pod
// would be drained before.
const metadataDelay = 1600 * time.Millisecond

// metadataObserved is when kubelet can be expected to start the container with the metadata last written for it. Where only
// the second of the write is known, as in OpenKruise's records, it is at most a second later.
func (v *view) metadataObserved(container string) time.Time {
	batch := v.written(container)
	if written := v.record.Extension().Written; written != nil && !written.Time.Before(batch) {
		return written.Add(metadataDelay)
	}
	return batch.Truncate(time.Second).Add(time.Second + metadataDelay)
}

// written is when the container's batch was written to the pod.
func (v *view) written(container string) time.Time {
	var written time.Time
	for _, batch := range v.record.State.ContainerBatchesRecord {
		if slices.Contains(batch.Containers, container) && batch.Timestamp.After(written) {
			written = batch.Timestamp.Time
		}
	}
	return written
}

// hindered tells why kubelet does not start the container, or nil if nothing is known to be in the way.
func (v *view) hindered(status *corev1.ContainerStatus) *Decision {
	if status == nil {
		return nil
	}
	if kubelet.RestartPolicyOf(v.pod, status.Name).Final(status) {
		d := blocked(status.Name, BlockedNotRestarted, "container %s has ended with code %d and its restart policy does not restart it",
			status.Name, status.State.Terminated.ExitCode)
		d.Final = true
		return d
	}
	waiting := status.State.Waiting
	if waiting == nil || waiting.Reason == "" || waiting.Reason == "ContainerCreating" || waiting.Reason == "PodInitializing" {
		return nil
	}
	d := blocked(status.Name, waiting.Reason, "container %s: %s", status.Name, oneLine(waiting.Message))
	d.Again = kubelet.BackoffUntil(status)
	d.Final = waiting.Reason == "InvalidImageName" || waiting.Reason == "ErrImageNeverPull"
	return d
}

// maxMessage bounds what is taken over from kubelet, in bytes.
const maxMessage = 500

func oneLine(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > maxMessage {
		text = strings.ToValidUTF8(text[:maxMessage], "") + "…"
	}
	return text
}
