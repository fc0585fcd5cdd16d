package configchange

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr/requester"
	"github.com/refit-project/refit/internal/recheck"
)

const (
	// quiet is how long nothing must have changed before a restart, so that several changes cause one restart.
	quiet = 3 * time.Second
	// refresh is the time for kubelet to update the volumes of the pods before a restart.
	refresh = 3 * time.Second
	// timeToLive is the TTL of completed RestartRollouts, in seconds.
	timeToLive = 24 * 60 * 60
)

// Observation is what has been read for a trigger.
type Observation struct {
	Settings Settings
	// References are the references of the containers, and Objects the present objects, one for each reference that may
	// be read. The digest of an object that does not exist is empty.
	References []Reference
	Objects    []v1alpha1.ConfigObject
	// Busy is the name of an unfinished RestartRollout of the workload; empty if there is none.
	Busy string
}

// Decision is the result of Next. The caller applies its fields in order.
type Decision struct {
	// Refresh is the new value of an annotation of the pods, whose change makes kubelet update their volumes; empty for
	// no change.
	Refresh string
	// Create is the rollout to create, or nil. Its name is derived from the change and the number of earlier rollouts,
	// so that it is created only once.
	Create *v1alpha1.RestartRollout
	// Kept says which immutable objects have been replaced, and that kubelet keeps their earlier contents; empty if none has
	// been replaced since Status was written. It is for an Event.
	Kept string
	// Status is the new status, to write if it differs from the old one.
	Status v1alpha1.RestartTriggerStatus
	// Again is when to call Next again.
	Again recheck.At
}

// Next returns what to do about a trigger. For an object that is new to the trigger it records the present content, and
// for a deleted object it keeps the last content: neither causes a restart. Nor does an immutable object that has been
// deleted and created again, since kubelet does not watch an immutable object that it has read.
func Next(trigger *v1alpha1.RestartTrigger, observed Observation, now time.Time) Decision {
	d := newDecision(trigger)
	known := map[string]v1alpha1.ConfigObject{}
	for _, object := range trigger.Status.Objects {
		known[object.Kind+"/"+object.Name] = object
	}
	var changed, kept []v1alpha1.ConfigObject
	current := make([]v1alpha1.ConfigObject, 0, len(observed.Objects))
	d.Status.Objects = nil
	for _, object := range observed.Objects {
		before, ok := known[object.Kind+"/"+object.Name]
		if ok && object.Digest == "" {
			object.Digest, object.Immutable = before.Digest, before.Immutable
		}
		current = append(current, object)
		switch {
		case !ok || object.Digest == before.Digest:
		case before.Immutable:
			kept = append(kept, object)
		default:
			changed = append(changed, object)
			object = before
		}
		d.Status.Objects = append(d.Status.Objects, object)
	}
	if len(kept) > 0 {
		d.Kept = keptBy(trigger, kept)
	}
	if len(changed) == 0 {
		d.Status.Pending = nil
		if d.Kept != "" {
			d.ready(now, v1alpha1.ReasonImmutableReplaced, d.Kept)
		} else {
			d.ready(now, v1alpha1.ReasonWatching, fmt.Sprintf("%d ConfigMaps and Secrets are watched", len(current)))
		}
		return d
	}
	d.pending(trigger, observed, changed, now)
	if d.Create != nil {
		d.Status.Objects, d.Status.Pending = current, nil
		d.Status.Rollouts++
		d.Status.LastRollout = d.Create.Name
		d.ready(now, v1alpha1.ReasonWatching, fmt.Sprintf("%d ConfigMaps and Secrets are watched", len(current)))
	}
	return d
}

func newDecision(trigger *v1alpha1.RestartTrigger) Decision {
	d := Decision{Status: *trigger.Status.DeepCopy()}
	d.Status.ObservedGeneration = trigger.Generation
	return d
}

// Invalid returns the decision for a workload whose annotations are unreadable.
func Invalid(trigger *v1alpha1.RestartTrigger, err error, now time.Time) Decision {
	d := newDecision(trigger)
	d.condition(now, metav1.ConditionFalse, v1alpha1.ReasonInvalidAnnotation, err.Error())
	return d
}

// pending takes the next step for changed objects.
func (d *Decision) pending(trigger *v1alpha1.RestartTrigger, observed Observation, changed []v1alpha1.ConfigObject, now time.Time) {
	digest := sha256.New()
	for _, object := range changed {
		fmt.Fprintf(digest, "%s/%s=%s\n", object.Kind, object.Name, object.Digest)
	}
	sum := hex.EncodeToString(digest.Sum(nil))
	if d.Status.Pending == nil || d.Status.Pending.Digest != sum {
		d.Status.Pending = &v1alpha1.ConfigChange{Digest: sum, Time: metav1.NewTime(now)}
	}
	change, reason := d.Status.Pending, reasonOf(changed)
	if at := change.Time.Add(quiet); now.Before(at) {
		d.Again = recheck.On(at)
		d.ready(now, v1alpha1.ReasonPending, reason+": waiting for further changes")
		return
	}
	name := rolloutName(trigger, sum)
	if observed.Busy != "" && observed.Busy != name { // it is our own if the status was not written after the creation
		d.ready(now, v1alpha1.ReasonPending, reason+": waiting for the end of RestartRollout "+observed.Busy)
		return
	}
	if opens := observed.Settings.Window.opens(now); opens.After(now) {
		d.Again = recheck.On(opens)
		d.ready(now, v1alpha1.ReasonPending, fmt.Sprintf("%s: waiting for the window that begins at %s", reason, opens.UTC().Format(time.RFC3339)))
		return
	}
	if mounted(observed.References, changed) {
		if change.RefreshTime == nil {
			d.Refresh, change.RefreshTime = name, &metav1.Time{Time: now}
		}
		if at := change.RefreshTime.Add(refresh); now.Before(at) {
			d.Again = recheck.On(at)
			d.ready(now, v1alpha1.ReasonPending, reason+": waiting for kubelet to update the volumes")
			return
		}
	}
	d.Create = newRollout(trigger, observed.Settings, name, changed[0], reason)
}

// keptBy returns a text that says which immutable objects have been replaced, and what the user can do.
func keptBy(trigger *v1alpha1.RestartTrigger, replaced []v1alpha1.ConfigObject) string {
	target := trigger.Spec.TargetRef
	return fmt.Sprintf("%s; nothing is restarted, because kubelet keeps the content of an immutable object while a pod of the node uses it: "+
		"use an object with another name, or replace the pods: kubectl rollout restart %s/%s --namespace=%s",
		reasonOf(replaced), strings.ToLower(target.Kind), target.Name, trigger.Namespace)
}

// reasonOf returns a text that says which objects have changed.
func reasonOf(changed []v1alpha1.ConfigObject) string {
	var names []string
	for _, object := range changed {
		names = append(names, object.Kind+" "+object.Name)
	}
	verb := " has changed"
	if len(names) > 1 {
		verb = " have changed"
	}
	if len(names) > 3 {
		names = append(names[:2], fmt.Sprintf("%d others", len(names)-2))
	}
	return strings.Join(names, ", ") + verb
}

func mounted(references []Reference, changed []v1alpha1.ConfigObject) bool {
	for _, reference := range references {
		for _, object := range changed {
			if reference.Mounted && reference.Kind == object.Kind && reference.Name == object.Name {
				return true
			}
		}
	}
	return false
}

func (d *Decision) ready(now time.Time, reason, message string) {
	d.condition(now, metav1.ConditionTrue, reason, message)
}

func (d *Decision) condition(now time.Time, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&d.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: status, Reason: reason, Message: message, ObservedGeneration: d.Status.ObservedGeneration, LastTransitionTime: metav1.NewTime(now),
	})
}

// maxName leaves space in the names of ContainerRecreateRequests, which are derived from the names of rollouts.
const maxName = 180

// rolloutName returns the name of the next rollout of the trigger, for this change.
func rolloutName(trigger *v1alpha1.RestartTrigger, change string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%d/%s", trigger.UID, trigger.Status.Rollouts+1, change))
	return cut(trigger.Spec.TargetRef.Name) + "-" + hex.EncodeToString(sum[:5])
}

// TriggerName returns the name of the RestartTrigger of a workload.
func TriggerName(kind, name string) string {
	full := strings.ToLower(kind) + "-" + name
	if short := cut(full); short != full {
		sum := sha256.Sum256([]byte(full))
		return short + "-" + hex.EncodeToString(sum[:5])
	}
	return full
}

func cut(name string) string {
	return strings.TrimRight(name[:min(len(name), maxName)], "-.")
}

func newRollout(trigger *v1alpha1.RestartTrigger, settings Settings, name string, first v1alpha1.ConfigObject, reason string) *v1alpha1.RestartRollout {
	target := trigger.Spec.TargetRef
	created := &v1alpha1.RestartRollout{ObjectMeta: metav1.ObjectMeta{
		Namespace: trigger.Namespace, Name: name,
		Annotations: map[string]string{
			v1alpha1.AnnotationTrigger: first.Kind + "/" + first.Name,
			v1beta1.AnnotationReason:   requester.Printable(reason),
		},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: v1alpha1.GroupVersion().String(), Kind: v1alpha1.KindRestartTrigger, Name: trigger.Name, UID: trigger.UID, Controller: new(true),
		}},
	}}
	created.Spec = v1alpha1.RestartRolloutSpec{
		TargetRef: &target, Containers: v1alpha1.RolloutContainers(settings.Containers...), TTLSecondsAfterFinished: new(int32(timeToLive)),
		RolloutPace: v1alpha1.RolloutPace{MaxUnavailable: settings.MaxUnavailable, Paused: settings.Paused},
	}
	return created
}
