package status

import (
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/internal/table"
	"github.com/refit-project/refit/rollout/schedule"
)

// none is the text of a cell without a value, as with kubectl get.
const none = "<none>"

// cause is an object that creates RestartRollouts: a RestartSchedule or a RestartTrigger.
type cause struct {
	name   string // KIND/NAME
	target string
	state  string
	next   string // when it creates the next rollout
	last   string // when it created the last one
	made   string // the last rollout
	detail string
}

// causes returns the table of RestartSchedules and RestartTriggers. rollouts are the last ones by the UIDs of their
// creators.
func (c Config) causes(ctx context.Context, rollouts map[types.UID]Line) (table.Table, error) {
	shown := table.Table{Columns: []table.Column{
		{Name: "NAME"}, {Name: "TARGET"}, {Name: "STATE"}, {Name: "NEXT RUN"}, {Name: "LAST RUN"}, {Name: "LAST ROLLOUT"}, {Name: "DETAIL", Wide: true},
	}}
	if c.Namespace == "" {
		shown.Columns = append([]table.Column{{Name: "NAMESPACE"}}, shown.Columns...)
	}
	for _, list := range []client.ObjectList{&v1alpha1.RestartScheduleList{}, &v1alpha1.RestartTriggerList{}} {
		objects, err := c.list(ctx, list)
		if apierrors.IsForbidden(err) { // RestartTriggers contain digests of Secrets, which the role view may not read
			continue
		}
		if err != nil {
			return shown, err
		}
		for _, object := range objects {
			d := describeCause(object, rollouts[object.GetUID()], c.Now())
			cells := []any{d.name, d.target, d.state, d.next, d.last, d.made, d.detail}
			if c.Namespace == "" {
				cells = append([]any{object.GetNamespace()}, cells...)
			}
			shown.Rows = append(shown.Rows, table.Row{Object: object, Cells: cells})
		}
	}
	return shown, nil
}

// describeCause returns the row of a RestartSchedule or a RestartTrigger; rollout is the last one that it has created.
func describeCause(object client.Object, rollout Line, now time.Time) cause {
	d := cause{next: none, last: none, made: none}
	if rollout.Object != nil {
		d.made, d.last = rollout.Object.GetName()+" "+rollout.State, since(rollout.Object.GetCreationTimestamp().Time, now)
	}
	switch o := object.(type) {
	case *v1alpha1.RestartSchedule:
		d.name, d.target = "restartschedule/"+o.Name, workload(o.Spec.RolloutTemplate.Spec.TargetRef)
		d.schedule(o, now)
	case *v1alpha1.RestartTrigger:
		d.name, d.target = "restarttrigger/"+o.Name, workload(&o.Spec.TargetRef)
		d.trigger(o)
	}
	return d
}

func (d *cause) schedule(object *v1alpha1.RestartSchedule, now time.Time) {
	spec, status := object.Spec, object.Status
	d.detail = strings.TrimSpace(spec.Schedule + " " + spec.TimeZone)
	if at := status.LastScheduleTime; at != nil {
		d.last = since(at.Time, now)
	}
	times, err := schedule.Read(&spec)
	switch {
	case err != nil:
		d.state, d.detail = "Invalid", err.Error()
		return
	case spec.Suspend:
		d.state = "Suspended"
		return
	case len(status.Active) > 0:
		d.state = "Active"
	default:
		d.state = "Scheduled"
	}
	if at := times.After(now); !at.IsZero() {
		d.next = "in " + duration.HumanDuration(at.Sub(now))
		d.detail += fmt.Sprintf(": next run at %s", at.Format(time.RFC3339))
	}
}

func (d *cause) trigger(object *v1alpha1.RestartTrigger) {
	var watched []string
	for _, of := range object.Status.Objects {
		watched = append(watched, of.Kind+"/"+of.Name)
	}
	d.state, d.detail = "Waiting", strings.Join(watched, ", ")
	if ready := meta.FindStatusCondition(object.Status.Conditions, v1alpha1.ConditionReady); ready != nil {
		d.state = ready.Reason
		if d.detail = joined(d.detail, ready.Message); len(watched) == 0 {
			d.detail = ready.Message
		}
	}
	if last := object.Status.LastRollout; last != "" && d.made == none {
		d.made = last // it has been deleted since
	}
}

func workload(ref *v1alpha1.WorkloadReference) string {
	if ref == nil {
		return "pods"
	}
	return strings.ToLower(ref.Kind) + "/" + ref.Name
}

func since(at, now time.Time) string {
	return duration.HumanDuration(now.Sub(at)) + " ago"
}
