package inplace

import (
	"maps"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/inplace/plan"
	"github.com/refit-project/refit/inplace/record"
	"github.com/refit-project/refit/internal/must"
)

// StepKind says what a step writes.
type StepKind string

// The kinds.
const (
	StepRecord    StepKind = "Record"    // the record alone
	StepDrain     StepKind = "Drain"     // condition of a readiness gate to False
	StepResize    StepKind = "Resize"    // CPU and memory, through pods/resize
	StepWrite     StepKind = "Write"     // images, labels and annotations, with the record
	StepRestart   StepKind = "Restart"   // a request to restart a container whose environment is out of date
	StepMarkReady StepKind = "MarkReady" // conditions of readiness gates to True
)

// Step is one write to the API server.
type Step struct {
	Kind    StepKind
	Message string // describes the step to users
	// Subresource is "", "status" or "resize".
	Subresource string
	// Restart is the instance that StepRestart stops.
	Restart Instance
	// stage is what StepResize and StepWrite write.
	stage *plan.Stage
	patch *patch // nil for StepRestart
}

// Patch returns a strategic merge patch of the pod. It contains the UID and the resource version of the pod that was
// used to decide, so the API server refuses it if the pod has changed since.
func (s *Step) Patch() []byte { return must.JSON(s.patch) }

// Instance is one run of a container.
type Instance struct{ Container, ContainerID string }

func step(s *Step) *Decision { return &Decision{Kind: KindStep, Step: s, Message: s.Message} }

// patch is the part of a pod that a step writes.
type patch struct {
	Metadata struct {
		UID             string             `json:"uid"`
		ResourceVersion string             `json:"resourceVersion"`
		Labels          map[string]*string `json:"labels,omitempty"`
		Annotations     map[string]*string `json:"annotations,omitempty"`
	} `json:"metadata"`
	Spec   *patchedSpec   `json:"spec,omitempty"`
	Status *patchedStatus `json:"status,omitempty"`
}

type patchedSpec struct {
	Containers     []patchedContainer `json:"containers,omitempty"`
	InitContainers []patchedContainer `json:"initContainers,omitempty"`
}

type patchedContainer struct {
	Name      string                       `json:"name"`
	Image     string                       `json:"image,omitempty"`
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`
}

type patchedStatus struct {
	Conditions []patchedCondition `json:"conditions"`
}

// patchedCondition encodes empty fields as null, so that nothing remains of the previous condition.
type patchedCondition struct {
	Type               corev1.PodConditionType `json:"type"`
	Status             corev1.ConditionStatus  `json:"status"`
	LastTransitionTime metav1.Time             `json:"lastTransitionTime"`
	Reason             *string                 `json:"reason"`
	Message            *string                 `json:"message"`
}

func (v *view) patch() *patch {
	p := &patch{}
	p.Metadata.UID, p.Metadata.ResourceVersion = string(v.pod.UID), v.pod.ResourceVersion
	p.Metadata.Labels, p.Metadata.Annotations = map[string]*string{}, map[string]*string{}
	return p
}

func (p *patch) step(kind StepKind, subresource, message string) *Step {
	return &Step{Kind: kind, Subresource: subresource, patch: p, Message: message}
}

// keep adds the record to a patch.
func (p *patch) keep(pod *corev1.Pod, kept *record.Record) {
	maps.Copy(p.Metadata.Annotations, kept.Annotations(pod))
}

func (v *view) save(next *record.Record, message string) *Step {
	p := v.patch()
	p.keep(v.pod, next)
	return p.step(StepRecord, "", message)
}

// clear removes resources from the record that the containers now have.
func (v *view) clear() *Step {
	return v.save(v.record.Written(v.pod, &plan.Stage{Kind: plan.StageResize}, v.now), "record that the resize is over")
}

// conditions returns a step that writes conditions, and the record if there is one.
func (v *view) conditions(kind StepKind, message string, kept *record.Record, conditions ...corev1.PodCondition) *Step {
	// Only whole seconds are stored. Round up, so that a drain is never too short.
	at := metav1.NewTime(v.now.Add(time.Second - time.Nanosecond).Truncate(time.Second))
	p := v.patch()
	if kept != nil {
		p.keep(v.pod, kept)
	}
	p.Status = &patchedStatus{}
	for _, c := range conditions {
		if c.LastTransitionTime.IsZero() {
			c.LastTransitionTime = at
		}
		p.Status.Conditions = append(p.Status.Conditions, patchedCondition{c.Type, c.Status, c.LastTransitionTime, orNull(c.Reason), orNull(c.Message)})
	}
	return p.step(kind, "status", message)
}

func orNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

func (v *view) resize(stage *plan.Stage) *Step {
	p := v.patch()
	p.Spec = &patchedSpec{}
	for _, change := range stage.Changes {
		p.Spec.add(&change, patchedContainer{Name: change.Container, Resources: change.Resources})
	}
	written := p.step(StepResize, "resize", "resize "+names(stage.Containers()))
	written.stage = stage
	return written
}

func (s *patchedSpec) add(change *plan.Change, container patchedContainer) {
	if change.Sidecar {
		s.InitContainers = append(s.InitContainers, container)
		return
	}
	s.Containers = append(s.Containers, container)
}

// write returns a step that writes all changes of a stage and the record at once.
func (v *view) write(stage *plan.Stage) *Step {
	p := v.patch()
	var said []string
	for key, value := range stage.Labels {
		p.Metadata.Labels[key] = value
	}
	for key, value := range stage.Annotations {
		p.Metadata.Annotations[key] = value
	}
	if stage.Kind == plan.StageMetadata {
		said = append(said, "change labels and annotations")
	}
	for _, change := range stage.Changes {
		for key, value := range change.Metadata.Labels {
			p.Metadata.Labels[key] = &value
		}
		for key, value := range change.Metadata.Annotations {
			p.Metadata.Annotations[key] = &value
		}
		if change.ChangesMetadata() {
			said = append(said, "change the metadata that container "+change.Container+" refers to")
		}
		if change.Image != "" {
			if p.Spec == nil {
				p.Spec = &patchedSpec{}
			}
			p.Spec.add(&change, patchedContainer{Name: change.Container, Image: change.Image})
			said = append(said, "set the image of container "+change.Container+" to "+change.Image)
		}
	}
	p.keep(v.pod, v.record.Written(v.pod, stage, v.now))
	written := p.step(StepWrite, "", strings.Join(said, ", "))
	written.stage = stage
	return written
}

func (v *view) restart(container, id string) *Step {
	return &Step{
		Kind: StepRestart, Restart: Instance{Container: container, ContainerID: id},
		Message: "restart container " + container + " with its new environment",
	}
}
