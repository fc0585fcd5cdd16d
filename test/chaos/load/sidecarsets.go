package load

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/test/chaos/cluster"
	"github.com/refit-project/refit/test/chaos/history/entry"
	"github.com/refit-project/refit/test/chaos/records"
)

const (
	sidecarNamespace = cluster.Label + "-sidecars"
	sidecarName      = "side"
	sidecarReplicas  = 3 // of each workload
	sidecarMost      = 2 // unavailable at a time
	// sidecarTime is the wait for one rollout.
	sidecarTime = 4 * time.Minute

	sidecarMissing = "docker.io/library/busybox:no-such-tag"
)

var (
	sidecarWorkloads = []string{"a", "b"}
	sidecarImages    = []string{"docker.io/library/busybox:1.36", "docker.io/library/busybox:1.35"}
	sidecarLabels    = map[string]string{cluster.Label: "sidecars"}
)

// SidecarSets changes the image of a SidecarSet again and again, whose pods belong to two Deployments.
type SidecarSets struct {
	cluster *cluster.Cluster
	journal *records.Journal
	choice  *rand.Rand
	calm    bool
}

// SidecarSet is the object, by its name.
func SidecarSet() *v1beta1.SidecarSet {
	return &v1beta1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: cluster.Label}}
}

// StartSidecarSets makes the SidecarSet and its pods, and waits until they are ready. In a calm run no pod is deleted and no
// image is missing.
func StartSidecarSets(ctx context.Context, c *cluster.Cluster, journal *records.Journal, choice *rand.Rand, calm bool) (*SidecarSets, error) {
	if err := c.Namespace(ctx, sidecarNamespace); err != nil {
		return nil, err
	}
	set := SidecarSet()
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: sidecarLabels}
	set.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: sidecarNamespace}}
	set.Spec.UpdateStrategy.MaxUnavailable = new(intstr.FromInt32(sidecarMost))
	set.Spec.Containers = []v1beta1.SidecarContainer{{Container: corev1.Container{
		Name: sidecarName, Image: sidecarImages[0], Command: []string{"sh", "-c", "trap 'exit 0' TERM; while :; do sleep 1000 & wait $!; done"},
	}}}
	if err := client.IgnoreAlreadyExists(c.Create(ctx, set)); err != nil {
		return nil, fmt.Errorf("make SidecarSet: %w", err)
	}
	s := &SidecarSets{cluster: c, journal: journal, choice: choice, calm: calm}
	probe := c.Pod(sidecarNamespace, "probe", "", func(*corev1.PodSpec) {})
	probe.Labels = sidecarLabels
	err := cluster.Until(ctx, "the webhook to know the SidecarSet", cluster.RolloutTime, func(ctx context.Context) bool {
		pod := probe.DeepCopy()
		return c.Create(ctx, pod, client.DryRunAll) == nil && slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == sidecarName })
	})
	if err != nil {
		return nil, err
	}
	for _, name := range sidecarWorkloads {
		if err := client.IgnoreAlreadyExists(c.Create(ctx, s.workload(name))); err != nil {
			return nil, fmt.Errorf("make deployment: %w", err)
		}
	}
	return s, s.wait(ctx, cluster.RolloutTime)
}

func (s *SidecarSets) workload(name string) *appsv1.Deployment {
	labels := map[string]string{cluster.Label: sidecarLabels[cluster.Label], "app": name}
	object := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: sidecarNamespace, Name: name}}
	object.Spec.Replicas = new(int32(sidecarReplicas))
	object.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	object.Spec.Template.Labels = labels
	object.Spec.Template.Spec = s.cluster.Pod(sidecarNamespace, "", "", func(*corev1.PodSpec) {}).Spec
	return object
}

// Run changes the image until the context ends. The last rollout may be under way then.
func (s *SidecarSets) Run(ctx context.Context) error {
	for n := 1; ctx.Err() == nil; n++ {
		image, faulty := sidecarImages[n%len(sidecarImages)], !s.calm && s.choice.IntN(5) == 0
		if faulty {
			image = sidecarMissing
		}
		if s.setImage(ctx, image) != nil {
			_ = cluster.Pause(ctx, time.Second) // an outage
			continue
		}
		begun := time.Duration(s.choice.Int64N(int64(6 * time.Second)))
		if !s.calm && s.choice.IntN(2) == 0 && cluster.Pause(ctx, begun) == nil {
			s.deletePod(ctx, image)
		}
		if faulty || s.choice.IntN(4) == 0 { // the next image comes while this one is under way
			_ = cluster.Pause(ctx, begun)
			continue
		}
		if err := s.wait(ctx, time.Minute); err != nil && ctx.Err() == nil {
			s.journal.Say("%v", err) // as in an outage; the judge looks at the last one
		}
		_ = cluster.Pause(ctx, 2*time.Second)
	}
	return nil
}

// Last makes one more rollout, without faults, and waits for its end.
func (s *SidecarSets) Last(ctx context.Context) error {
	err := cluster.Until(ctx, "change of the SidecarSet", time.Minute, func(ctx context.Context) bool { return s.setImage(ctx, sidecarImages[0]) == nil })
	if err != nil {
		return err
	}
	if err := s.wait(ctx, sidecarTime); !errors.Is(err, cluster.ErrLate) {
		return err
	}
	return nil // the judge says what it means
}

func (s *SidecarSets) setImage(ctx context.Context, image string) error {
	return call(ctx, func(ctx context.Context) error {
		set := SidecarSet()
		if err := s.cluster.Get(ctx, client.ObjectKeyFromObject(set), set); err != nil {
			return fmt.Errorf("get SidecarSet: %w", err)
		}
		before := set.DeepCopy()
		set.Spec.Containers[0].Image = image
		if err := s.cluster.Patch(ctx, set, client.MergeFrom(before)); err != nil { // the manager writes its status meanwhile
			return fmt.Errorf("change image of SidecarSet: %w", err)
		}
		return nil
	})
}

// wait for the end of the rollout of the newest image.
func (s *SidecarSets) wait(ctx context.Context, limit time.Duration) error {
	return cluster.Until(ctx, "end of the rollout of the SidecarSet", limit, func(ctx context.Context) bool {
		set := SidecarSet()
		return s.cluster.Get(ctx, client.ObjectKeyFromObject(set), set) == nil && set.Status.ObservedGeneration == set.Generation &&
			set.Status.MatchedPods > 0 && set.Status.UpdatedReadyPods == set.Status.MatchedPods && s.available(ctx)
	})
}

// available reports whether the workloads have all their pods.
func (s *SidecarSets) available(ctx context.Context) bool {
	var workloads appsv1.DeploymentList
	if s.cluster.List(ctx, &workloads, client.InNamespace(sidecarNamespace)) != nil {
		return false
	}
	return !slices.ContainsFunc(workloads.Items, func(d appsv1.Deployment) bool { return d.Status.ReadyReplicas != sidecarReplicas })
}

// deletePod deletes a pod whose update to the image has been begun.
func (s *SidecarSets) deletePod(ctx context.Context, image string) {
	var pods corev1.PodList
	if s.cluster.List(ctx, &pods, client.InNamespace(sidecarNamespace)) != nil {
		return
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if pod.DeletionTimestamp != nil || !slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == sidecarName && c.Image == image }) {
			continue
		}
		begin, grace := time.Now(), client.GracePeriodSeconds(s.choice.IntN(3)) // 0 is at once
		if call(ctx, func(ctx context.Context) error { return s.cluster.Delete(ctx, pod, grace) }) == nil {
			_ = s.journal.Fault(entry.Fault{Kind: records.KindPodDelete, Detail: sidecarNamespace, Node: pod.Spec.NodeName, Begin: begin})
		}
		return
	}
}
