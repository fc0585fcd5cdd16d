package cli

import (
	"context"
	"io"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/console"
	"github.com/refit-project/refit/internal/table"
	"github.com/refit-project/refit/rollout/schedule"
)

// Schedules prints the RestartSchedules of the namespace of the configuration, or of all namespaces if it is empty.
func Schedules(ctx context.Context, config Config, options table.Options, now time.Time, out io.Writer) error {
	var list v1alpha1.RestartScheduleList
	if err := config.API.List(ctx, &list, client.InNamespace(config.Namespace)); err != nil {
		return noKind(err)
	}
	shown := table.Table{
		Columns: []table.Column{{Name: "NAME"}, {Name: "SCHEDULE"}, {Name: "TIMEZONE"}, {Name: "TARGET"}, {Name: "STATE"}, {Name: "LAST"}, {Name: "NEXT"}, {Name: "AT", Wide: true}, {Name: "CONTAINERS", Wide: true}},
		Nothing: "there are no RestartSchedules",
	}
	if config.Namespace == "" {
		shown.Columns = slices.Insert(shown.Columns, 0, table.Column{Name: "NAMESPACE"})
	}
	for i := range list.Items {
		cells := scheduleCells(&list.Items[i], now)
		if config.Namespace == "" {
			cells = slices.Insert(cells, 0, any(list.Items[i].Namespace))
		}
		shown.Rows = append(shown.Rows, table.Row{Object: &list.Items[i], Cells: cells})
	}
	return table.Print(out, options, config.API.Scheme(), shown)
}

const unknown = "-"

func scheduleCells(object *v1alpha1.RestartSchedule, now time.Time) []any {
	spec, status, template := &object.Spec, &object.Status, &object.Spec.RolloutTemplate.Spec
	state, last, next, at := "Scheduled", unknown, unknown, unknown
	if status.LastScheduleTime != nil {
		last = duration.HumanDuration(now.Sub(status.LastScheduleTime.Time)) + " ago"
	}
	times, err := schedule.Read(spec)
	switch {
	case err != nil:
		state = "Invalid: " + err.Error()
	case spec.Suspend:
		state = "Suspended"
	default:
		if len(status.Active) > 0 {
			state = "Active"
		}
		if when := times.After(now); !when.IsZero() {
			next, at = "in "+duration.HumanDuration(when.Sub(now)), when.Format(time.RFC3339)
		}
	}
	var containers []string
	for _, container := range template.Containers {
		containers = append(containers, container.Name)
	}
	target := Target{Workload: template.TargetRef, Selector: template.Selector}
	return []any{object.Name, spec.Schedule, spec.TimeZone, target.String(), state, last, next, at, strings.Join(containers, ",")}
}

// Suspend suspends a RestartSchedule, or resumes it. Its rollouts continue.
func Suspend(ctx context.Context, config Config, name string, suspended bool) error {
	object := &v1alpha1.RestartSchedule{}
	if err := config.API.Get(ctx, client.ObjectKey{Namespace: config.Namespace, Name: name}, object); err != nil {
		return noKind(err)
	}
	done, already := "resumed", "is not suspended"
	if suspended {
		done, already = "suspended: rollouts that have begun continue", "is suspended already"
	}
	if object.Spec.Suspend == suspended {
		done = already
	} else {
		before := object.DeepCopy()
		object.Spec.Suspend = suspended
		if err := config.API.Patch(ctx, object, client.MergeFrom(before)); err != nil {
			return refused(err)
		}
	}
	config.Output.Print("restartschedule/%s %s\n", name, done)
	return nil
}

// Trigger creates a RestartRollout from the template of a RestartSchedule at once, as kubectl create job --from does for a CronJob. It
// belongs to the user, and the schedule does not count it.
func Trigger(ctx context.Context, config Config, name string) error {
	ctx, cancel := config.limited(ctx)
	defer cancel()
	var of v1alpha1.RestartSchedule
	if err := config.API.Get(ctx, client.ObjectKey{Namespace: config.Namespace, Name: name}, &of); err != nil {
		return noKind(err)
	}
	template := of.Spec.RolloutTemplate.DeepCopy()
	if config.Reason == "" {
		config.Reason = "RestartSchedule " + name + ", triggered by hand"
	}
	r := &restarter{Config: config}
	object := &v1alpha1.RestartRollout{
		ObjectMeta: metav1.ObjectMeta{Namespace: config.Namespace, GenerateName: generateName(name), Labels: template.Metadata.Labels, Annotations: schedule.Annotations(template.Metadata.Annotations)},
		Spec:       template.Spec,
	}
	object.Annotations[v1beta1.AnnotationReason] = config.Reason
	if object.Spec.TTLSecondsAfterFinished == nil { // the schedule's limits of kept rollouts are not about it
		object.Spec.TTLSecondsAfterFinished = new(int32(requestTTL))
	}
	target := Target{Workload: object.Spec.TargetRef, Selector: object.Spec.Selector}
	if _, err := r.pods(ctx, target); err != nil {
		return err
	}
	if err := r.create(ctx, object); err != nil {
		return err
	}
	if config.DryRun {
		r.Output.Print("a RestartRollout of %s would be created, %s (dry run: admitted, and nothing done)\n", target, list(object.Spec.ContainerNames()))
		return r.Made.Ended(r.API.Scheme(), object)
	}
	r.Output.Say("RestartRollout %s: restart %s of %s", object.Name, list(object.Spec.ContainerNames()), target)
	if !config.Wait {
		return r.Made.Ended(r.API.Scheme(), object)
	}
	return console.Ended(ctx, console.Begun(r.followRollout(ctx, object)))
}
