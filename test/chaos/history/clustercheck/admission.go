package clustercheck

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/refit-project/refit/test/chaos/history/entry"
	"github.com/refit-project/refit/test/chaos/history/verdict"
)

const (
	// certificateTime is how long after the issue of a certificate a manager may still take it into use.
	certificateTime = 10 * time.Second
	// webhookTime is what the webhooks of Refit may cost a write that does not depend on them, on a busy machine.
	webhookTime = 12 * time.Second
)

// refusable are the resources that cannot be written without a manager.
var refusable = []string{entry.RequestResource, entry.RolloutResource, entry.ScheduleResource, entry.SetResource}

// admission checks that no write fails while the webhooks get another certificate or are slow, and that nothing but objects of
// Refit depends on webhooks that do not answer.
func (c check) admission() {
	for _, fault := range c.Faults {
		works, judged := map[string]string{entry.KindCertificates: "the webhooks got another certificate", entry.KindSlowWebhook: "the webhooks were slow", entry.KindManagerAway: ""}[fault.Kind]
		if !judged {
			continue
		}
		for _, w := range c.Writes {
			end := fault.End
			if fault.Kind == entry.KindCertificates {
				end = end.Add(certificateTime)
			}
			if w.Received.Before(fault.Begin) || w.Received.After(end) || c.otherwiseImpeded(fault, w) || c.brokenOff(w) {
				continue
			}
			failed := w.Code >= 500
			switch {
			case works != "" && failed:
				c.Violate("admission", w.Resource+" "+w.Namespace+"/"+w.Name, "refused while "+works, fault.Line, w.Line)
			case works != "" || slices.Contains(refusable, w.Resource):
			case failed:
				c.Violate("admission", w.Resource+" "+w.Namespace+"/"+w.Name, "refused while no webhook answered", fault.Line, w.Line)
			case w.Verb == "create" && w.Done.Sub(w.Received) > webhookTime:
				c.Violate("admission", w.Resource+" "+w.Namespace+"/"+w.Name,
					fmt.Sprintf("took %s while no webhook answered", w.Done.Sub(w.Received).Round(time.Millisecond)), fault.Line, w.Line)
			}
		}
	}
}

// refused checks that no policy of Refit refuses what one of its programs writes.
func (c check) refused() {
	for _, w := range c.Writes {
		if w.RefusedOwn {
			c.Violate("admission", w.Resource+" "+w.Namespace+"/"+w.Name, "a policy of Refit refused a write of Refit", w.Line)
		}
	}
}

// otherwiseImpeded reports whether another fault of the API server or of the managers may have been in the way of the write.
// Webhooks depend on nothing else.
func (c check) otherwiseImpeded(fault entry.Fault, w entry.Write) bool {
	return slices.ContainsFunc(c.Faults, func(f entry.Fault) bool {
		return f.Impedes && (f.OfControlPlane() || f.OfManagers() || f.Kind == entry.KindNodeLost) &&
			f.Line != fault.Line && f.Overlaps(w.Received.Add(-leaseTime), w.Done)
	})
}

// brokenOff reports whether the daemon or the sidecar that wrote was killed before it had the answer, or the manager, which was
// suspended, has ended as its lease had run out: the API server then gives up.
func (c check) brokenOff(w entry.Write) bool {
	if (w.Code == 504 || w.Disconnected) && w.User == c.Options.Manager {
		return slices.ContainsFunc(c.Faults, func(f entry.Fault) bool {
			return f.Kind == entry.KindManagerAway && f.Overlaps(w.Received, w.Done)
		})
	}
	if (w.Code == 504 || w.Disconnected) && strings.HasSuffix(w.User, ":refit-sidecar") {
		return slices.ContainsFunc(c.Faults, func(f entry.Fault) bool {
			return (f.Kind == entry.KindSidecarKill || f.Kind == entry.KindWatchedKill) && f.On(w.Node) && f.Overlaps(w.Received, w.Done)
		})
	}
	return (w.Code == 504 || w.Disconnected) && w.User == c.Options.Daemon && slices.ContainsFunc(c.Faults, func(f entry.Fault) bool {
		return f.Kind == entry.KindDaemonKill && f.On(w.Node) && !f.Begin.Before(w.Received.Add(-verdict.Noticed)) && !f.Begin.After(w.Done.Add(verdict.Noticed))
	})
}

// throttled checks that a daemon with hardly any CPU time is alive for kubelet.
func (c check) throttled() {
	for _, fault := range c.Faults {
		if fault.Kind != entry.KindThrottle {
			continue
		}
		restarts := map[string]int32{} // by pod UID, before the fault
		for _, w := range c.Writes {
			if !c.of(c.Options.Daemon, w) || w.Pod.Spec.NodeName != fault.Node || len(w.Pod.Status.ContainerStatuses) == 0 {
				continue
			}
			uid, now := string(w.Pod.UID), w.Pod.Status.ContainerStatuses[0].RestartCount
			before, known := restarts[uid]
			switch {
			case w.Received.Before(fault.Begin) || !known:
				restarts[uid] = now
			case w.Received.Before(fault.End) && now > before:
				c.Violate("crash", "pod "+w.Namespace+"/"+w.Name, "restarted while it had hardly any CPU time", fault.Line, w.Line)
				restarts[uid] = now
			}
		}
	}
}
