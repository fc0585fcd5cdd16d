package inplace

import (
	"slices"
	"strings"
	"time"

	"github.com/distribution/reference"
	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/inplace/plan"
	"github.com/refit-project/refit/inplace/reported"
	"github.com/refit-project/refit/internal/kubelet"
)

// awaitBegun returns nil if everything that has been written to the pod has taken effect. Otherwise it returns a step,
// or what to wait for; only if there is neither, it returns what is stuck: a container before the resize.
func (v *view) awaitBegun() *Decision {
	var stuck *Decision
	look := func(d *Decision) *Decision {
		if d == nil || d.Kind != KindBlocked {
			return d
		}
		if stuck == nil || v.mayBeReady(stuck) {
			stuck = d
		}
		return nil
	}
	if v.record.State.UpdateResources && !v.resizePending() {
		if d := look(v.awaitResize()); d != nil {
			return d
		}
	}
	for _, containers := range [][]corev1.Container{v.pod.Spec.InitContainers, v.pod.Spec.Containers} {
		for i := range containers {
			if d := look(v.awaitContainer(&containers[i])); d != nil {
				return d
			}
		}
	}
	return stuck
}

// resizePending reports whether resources remain to be written. If so, what kubelet reports about the present ones does
// not matter.
func (v *view) resizePending() bool {
	return slices.ContainsFunc(v.record.Remaining(v.pod).Containers, func(c plan.Change) bool { return c.Resources != nil })
}

// awaitContainer returns nil if the container is not part of what has been begun, if it runs with what was written for
// it, or if something else will be written for it: an image that cannot be pulled does not delay the next image.
func (v *view) awaitContainer(container *corev1.Container) *Decision {
	state := &v.record.State
	_, imagePending := state.NextContainerImages[container.Name]
	_, metadataPending := state.NextContainerRefMetadata[container.Name]
	if imagePending || metadataPending {
		return nil
	}
	_, imageChanged := state.LastContainerStatuses[container.Name]
	envChanged := state.UpdateEnvFromMetadata && len(reported.MetadataEnvs(container)) > 0 && v.envBegun(container.Name)
	if !imageChanged && !envChanged {
		return nil
	}
	status := kubelet.StatusOf(v.pod, container.Name)
	if status == nil {
		return wait(container.Name, "waiting for kubelet to report container %s", container.Name)
	}
	if !v.observed() {
		return v.awaitObserved(v.lastWritten(container.Name))
	}
	if imageChanged && !v.hasImage(container, status) || status.State.Running == nil {
		if d := v.startProblem(status); d != nil && !v.ofSuperseded(container, status) {
			return d
		}
		d := wait(container.Name, "waiting for kubelet to start container %s with %s", container.Name, container.Image)
		d.Again = v.unlessSameDigest(container, status)
		return d
	}
	if envChanged {
		return v.awaitEnvironment(container, status)
	}
	return nil
}

// awaitObserved waits for kubelet to act on the present spec, in which these containers have been changed.
func (v *view) awaitObserved(changed []string) *Decision {
	return wait(changed[0], "waiting for kubelet to see the change of %s", names(changed))
}

// lastWritten returns the containers of the last batch that was written to the pod, or, if the record has none, otherwise. Kubelet
// has seen the changes of earlier batches.
func (v *view) lastWritten(otherwise ...string) []string {
	for _, batch := range slices.Backward(v.record.State.ContainerBatchesRecord) {
		last := slices.DeleteFunc(slices.Clone(batch.Containers), func(name string) bool { return plan.Find(&v.pod.Spec, name) == nil })
		if len(last) > 0 {
			return last
		}
	}
	return otherwise
}

// envBegun reports whether new metadata has been written for the container. Records of OpenKruise do not always name
// the container.
func (v *view) envBegun(name string) bool {
	return slices.Contains(v.changed(), name) || v.record.State.Refit == nil && len(v.record.State.ContainerBatchesRecord) == 0
}

// observed reports whether kubelet has begun to act on the present spec. This does not mean that its status describes
// the outcome (KEP-5067). Kubelets before Kubernetes 1.33 do not report it.
func (v *view) observed() bool {
	return v.pod.Status.ObservedGeneration == 0 || v.pod.Status.ObservedGeneration >= v.pod.Generation
}

// hasImage reports whether the instance in the status was created from the image in the spec.
//
// If the node's daemon has reported about this instance, its report decides. If the daemon has not reported about it
// yet, an instance with another image ID than the recorded one must have the name or the digest in the spec: kubelet
// may have started it with an image that was in the spec for a moment, and will stop it again.
//
// If no daemon reports, two rules apply. First, any other image ID counts, because the runtime may show another name of
// the image, except the image ID of an update that this one has superseded. Second, exactly the name in the spec
// counts, because different names of one image have the same ID. The second rule is wrong for a moment if an instance
// of the old image crashes and starts again before kubelet has seen the new spec, and both images are the same; then
// the image is not out of date in any way.
func (v *view) hasImage(container *corev1.Container, status *corev1.ContainerStatus) bool {
	hashes, known := v.reported.Of(status)
	if known && hashes.PlainHash != 0 {
		return reported.SameHash(hashes, container)
	}
	was := v.record.Extension().Instances[container.Name]
	if was.ContainerID != "" && was.ContainerID == status.ContainerID {
		return was.Image == container.Image // the image was changed back before kubelet replaced the instance
	}
	if status.ImageID == "" {
		return false
	}
	at := v.unlessSameDigest(container, status)
	switch another := status.ImageID != v.record.State.LastContainerStatuses[container.Name].ImageID; {
	case another && !v.daemonReports():
		return !superseded(&was, container, status) || !at.IsZero() && !v.now.Before(at)
	case v.daemonReports():
		return another && (sameImageName(status.Image, container.Image) || sameImageDigest(status.ImageID, container.Image))
	}
	return sameImageName(status.Image, container.Image) || !at.IsZero() && !v.now.Before(at)
}

// superseded reports whether an instance has an image that was in the spec only for a moment, and not the present one.
func superseded(was *v1beta1.InPlaceUpdateInstance, container *corev1.Container, status *corev1.ContainerStatus) bool {
	return !sameImageName(status.Image, container.Image) && slices.ContainsFunc(was.Superseded, func(image string) bool {
		return sameImageName(status.Image, image) || sameImageDigest(status.ImageID, image)
	})
}

// daemonReports reports whether a daemon of the pod's node reports container state. It may not have reported a container
// yet, for example one that has crashed.
func (v *view) daemonReports() bool { return len(v.reported) > 0 }

// settleMargin is how much longer than its grace period kubelet may take to stop a container.
const settleMargin = 10 * time.Second

// unlessSameDigest returns when an instance that is not the recorded one but has the recorded image ID counts as an
// instance of the new image, although it does not show its name: two tags have one digest, and the runtime shows the
// old tag. By that time kubelet would have stopped an instance of the old image that crashed and was started again just
// before kubelet saw the new spec. It returns zero if this does not apply: the daemon reports container state, or it is
// the recorded instance.
func (v *view) unlessSameDigest(container *corev1.Container, status *corev1.ContainerStatus) time.Time {
	was, recorded := v.record.Extension().Instances[container.Name]
	if v.daemonReports() || !recorded || was.ContainerID == status.ContainerID || status.State.Running == nil {
		return time.Time{}
	}
	grace := kubelet.GracePeriod(v.pod.Spec.TerminationGracePeriodSeconds)
	// kubelet stops the containers of a pod one after another.
	stops := time.Duration(len(v.pod.Spec.Containers) + len(v.pod.Spec.InitContainers))
	return v.written(container.Name).Add(stops*grace + settleMargin)
}

// sameImageName compares names in the full form that the runtime uses.
func sameImageName(a, b string) bool {
	left, errLeft := reference.ParseNormalizedNamed(a)
	right, errRight := reference.ParseNormalizedNamed(b)
	return errLeft == nil && errRight == nil && reference.TagNameOnly(left).String() == reference.TagNameOnly(right).String()
}

// sameImageDigest reports whether an image is named by the digest in the image ID.
func sameImageDigest(id, image string) bool {
	named, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		return false
	}
	digested, ok := named.(reference.Digested)
	return ok && strings.HasSuffix(id, digested.Digest().String())
}

// awaitEnvironment returns nil if the running instance was started after the metadata was written. Otherwise the
// instance has to be stopped after kubelet has received the metadata and the pod is drained. The daemon of the node
// does it without a request while the pod is drained; otherwise it needs a request. If the node's daemon does not
// report awaitContainer state, any other instance counts, also one that crashed and started again before kubelet had
// received the new metadata.
func (v *view) awaitEnvironment(container *corev1.Container, status *corev1.ContainerStatus) *Decision {
	hashes, known := v.reported.Of(status)
	was, recorded := v.record.Extension().Instances[container.Name]
	replaced := recorded && was.ContainerID != status.ContainerID
	known = known && hashes.ExtractedEnvFromMetadataHash != 0
	switch {
	case known && hashes.ExtractedEnvFromMetadataHash == reported.ExpectedEnvHash(container, v.pod):
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
	if d := v.awaitDrain(); d != nil {
		return d
	}
	if meta, listed := v.reported[container.Name]; v.enforced() && (known || listed && meta.ContainerID != status.ContainerID) {
		// A request in addition could arrive after the daemon has restarted the container, and restart it a second time.
		return wait(container.Name, "waiting for the node's daemon to restart container %s with its new environment", container.Name)
	}
	return step(v.restart(container.Name, status.ContainerID))
}

// metadataDelay is the time from the write of metadata to the restart of a container that takes its environment from
// it. Kubelet does not report which metadata it has observed (observedGeneration only counts changes of the spec). A
// sync of the pod that began before the write may wait for up to a second until kubelet has listed the containers
// again, and would start the container with the old environment. The delay is a little longer than the delay of the
// node's daemon, because otherwise the pod would be drained too early.
const metadataDelay = 1600 * time.Millisecond

// metadataObserved returns when kubelet can be expected to start the container with the metadata last written for it.
// If the time of the write is only known to the second, as in OpenKruise's records, it is up to a second too late.
func (v *view) metadataObserved(container string) time.Time {
	batch := v.written(container)
	if written := v.record.Extension().Written; written != nil && !written.Time.Before(batch) {
		return written.Add(metadataDelay)
	}
	return batch.Truncate(time.Second).Add(time.Second + metadataDelay)
}

// written returns when the container's batch was written to the pod.
func (v *view) written(container string) time.Time {
	var written time.Time
	for _, batch := range v.record.State.ContainerBatchesRecord {
		if slices.Contains(batch.Containers, container) && batch.Timestamp.After(written) {
			written = batch.Timestamp.Time
		}
	}
	return written
}
