package verdict

import (
	"slices"
	"time"

	"github.com/refit-project/refit/test/chaos/history/model"
)

// enoughStarts is the least number of starts from which Late is determined.
const enoughStarts = 20

// Late returns what the applications of this run took at most, in nine of ten cases, from the start of their container, as kubelet says, to
// the first line of their log. On a machine that can carry the load that is less than a second. On one that cannot, nothing happens in time,
// and the bounds of the checks follow it. It is 0 if there were few starts.
func (j *Judgement) Late() time.Duration {
	var late []time.Duration
	for _, p := range j.Pods {
		for container, instances := range p.Instances {
			late = append(late, lateStarts(startsOf(p, container), instances)...)
		}
	}
	if len(late) < enoughStarts {
		return 0
	}
	slices.Sort(late)
	return late[len(late)*9/10]
}

// startsOf returns when the instances of a container were started, in order.
func startsOf(p *model.Pod, container string) []time.Time {
	started := map[string]time.Time{}
	for _, w := range p.Statuses {
		for _, s := range slices.Concat(w.Pod.Status.ContainerStatuses, w.Pod.Status.InitContainerStatuses) {
			if s.Name == container && s.State.Running != nil {
				started[s.ContainerID] = s.State.Running.StartedAt.Time
			}
		}
	}
	var times []time.Time
	for _, at := range started {
		times = append(times, at)
	}
	slices.SortFunc(times, time.Time.Compare)
	return times
}

// lateStarts returns, for each start, how much later the application wrote its first line. Kubelet reports whole seconds.
func lateStarts(started []time.Time, instances []*model.Instance) []time.Duration {
	var late []time.Duration
	for n, at := range started {
		first := slices.IndexFunc(instances, func(i *model.Instance) bool { return !i.Start.Time.Before(at) })
		if first < 0 || n+1 < len(started) && !instances[first].Start.Time.Before(started[n+1]) {
			continue // it ended before it came to that
		}
		late = append(late, max(0, instances[first].Start.Time.Sub(at)-time.Second))
	}
	return late
}
