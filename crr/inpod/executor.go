package inpod

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/crr/queue"
	"github.com/refit-project/refit/crr/record"
	"github.com/refit-project/refit/internal/guard"
	"github.com/refit-project/refit/internal/hook"
	"github.com/refit-project/refit/internal/identity"
	"github.com/refit-project/refit/internal/kube/ownpod"
	"github.com/refit-project/refit/plugin"
	"github.com/refit-project/refit/signal"
)

// Requests reads and writes the requests of this pod; *ownpod.Requests implements it.
type Requests interface {
	KeepsConditions() bool
	WriteStatus(ctx context.Context, request *v1beta1.ContainerRecreateRequest, status v1beta1.ContainerRecreateRequestStatus) (*v1beta1.ContainerRecreateRequest, error)
}

// executor carries out the requests one after another. All methods except stop and wanted run in one goroutine.
type executor struct {
	own       string
	processes Processes
	requests  Requests
	observed  func() *corev1.Pod
	// clockOffset returns the API server's clock minus the local clock.
	clockOffset func() time.Duration
	warn        func(reason, message string)
	hooks       *hook.Runner
	logger      *slog.Logger
	guard       *guard.Guard

	// first is the request that is being carried out, or nil.
	first atomic.Pointer[crr.Request]

	acts map[string]crr.ActionState // of the request uid
	uid  string
	// taken is when this process first saw the request uid.
	taken time.Time
	// dropsIDs says that the API server has dropped container IDs that were written to the request uid.
	dropsIDs bool
	// missing maps instances that the pod's status calls running to the time since which they have had no process.
	missing map[identity.ContainerID]time.Time
	// ended receives the results of stops.
	ended chan stopped
	busy  bool
}

type stopped struct {
	uid, container string
	err            error
}

// next takes one step for the first request and returns when to run again; zero means after the next change.
func (e *executor) next(ctx context.Context, all map[string]*v1beta1.ContainerRecreateRequest) (time.Time, error) {
	list := make([]*crr.Request, 0, len(all))
	for _, r := range all {
		list = append(list, r)
	}
	open := queue.Order(list)
	pod := e.observed()
	if len(open) == 0 {
		e.first.Store(nil)
	}
	if len(open) == 0 || pod == nil {
		return time.Time{}, nil
	}
	e.first.Store(open[0])
	now := time.Now()
	var due time.Time      // of the waiting requests
	var notWritten []error // these errors do not delay the first request
	for _, waiting := range open[1:] {
		decision := crr.Wait(waiting, open[0], crr.Options{SignalsOnly: true}, e.clockOffset(), now)
		stored, err := e.write(ctx, waiting, decision.Status)
		switch {
		case errors.Is(err, ownpod.ErrNotFound):
			delete(all, waiting.Name)
		case err != nil:
			notWritten = append(notWritten, err)
		default:
			all[stored.Name] = stored
			due = crr.Earlier(due, decision.Again)
		}
	}
	again, stored, err := e.step(ctx, pod, open[0])
	again = crr.Earlier(again, due)
	if stored != nil {
		all[stored.Name] = stored // use the written version until the watch delivers it
		e.first.Store(stored)
	}
	if errors.Is(err, ownpod.ErrNotFound) {
		delete(all, open[0].Name)
		again, err = time.Now(), nil
	}
	return again, errors.Join(append(notWritten, err)...)
}

// step observes, plans, writes the status, and then performs the action.
func (e *executor) step(ctx context.Context, pod *corev1.Pod, request *crr.Request) (time.Time, *crr.Request, error) {
	now := time.Now()
	if e.uid != string(request.UID) {
		e.uid, e.acts, e.missing = string(request.UID), map[string]crr.ActionState{}, map[identity.ContainerID]time.Time{}
		e.taken, e.dropsIDs = now, false
	}
	begun := record.Begun(request)
	// A process that has just started has written nothing yet. It notices dropped IDs by what is missing from the
	// stored status.
	e.dropsIDs = e.dropsIDs || !equality.Semantic.DeepEqual(begun.Status, request.Status)
	request = begun
	instances := e.instances(ctx, pod, request)
	unstoppable, undecided := e.unstoppableContainers(ctx, pod, request, instances)
	observed := crr.Observation{
		Pod: pod, Runtime: runtimeOf(pod), Instances: instances, Actions: e.acts, Unstoppable: unstoppable,
		TakenAt: e.taken, DropsIDs: e.dropsIDs, Later: e.busy, ClockOffset: e.clockOffset(),
	}
	if undecided != "" {
		observed.Unseen = fmt.Sprintf("no process of container %s is seen; waiting for the pod's status to say whether it has ended", undecided)
	}
	decision := crr.Plan(request, observed, crr.Options{SignalsOnly: true}, now)
	if undecided != "" {
		decision.Again = crr.Earlier(decision.Again, now.Add(missingLook))
	}
	stored, err := e.write(ctx, request, decision.Status)
	if err != nil {
		return time.Time{}, nil, err
	}
	_, dropped := record.Missing(stored, decision.Status)
	e.dropsIDs = e.dropsIDs || dropped
	e.logger.Debug("planned", "request", request.Name, "why", decision.Why, "stop", decision.Stop != nil)
	if crr.Completed(stored) {
		e.logger.Info("request ended", "request", request.Name, "message", stored.Status.Message)
		return now, stored, nil
	}
	if decision.Stop != nil && !e.busy {
		e.begin(ctx, pod, *decision.Stop)
	}
	return decision.Again, stored, nil
}

const (
	// missingPatience is how long an instance without a process may be reported as running in the pod's status: kubelet
	// notices an exit within one or two seconds, and a busy kubelet within a few more.
	missingPatience = 15 * time.Second
	// missingLook is the interval between checks meanwhile if the status does not change.
	missingLook = 5 * time.Second
)

// killed is the exit code of a container that was ended by SIGKILL.
const killed = 137

// instances returns the instances in the pod's status. The status lags behind: an instance that was being stopped and
// has no process any more has exited, whatever the status says. Its exit code is not known then; for restartPolicy
// OnFailure, where it matters, the instance counts as killed.
func (e *executor) instances(ctx context.Context, pod *corev1.Pod, request *crr.Request) map[string][]crr.Instance {
	all := instances(pod)
	for _, state := range request.Status.ContainerRecreateStates {
		of := all[state.Name]
		if e.busy || len(of) == 0 || of[0].State != identity.StateRunning || of[0].ID.String() != state.ContainerID {
			continue
		}
		if _, err := e.processes.Find(ctx, first(of[0].ID)); errors.Is(err, signal.ErrNotFound) {
			of[0].State, of[0].ExitCode, of[0].FinishedAt = identity.StateExited, killed, time.Now()
		}
	}
	return all
}

// unstoppableContainers returns why the sidecar cannot stop running containers of the request, and the name of one
// container for which this is not known yet. It decides nothing while a stop is in progress.
func (e *executor) unstoppableContainers(ctx context.Context, pod *corev1.Pod, request *crr.Request, instances map[string][]crr.Instance) (why map[string]string, undecided string) {
	if e.busy {
		return nil, ""
	}
	why = map[string]string{}
	for _, container := range request.Spec.Containers {
		of := instances[container.Name]
		if len(of) == 0 || of[0].State != identity.StateRunning {
			continue
		}
		err := e.unstoppable(ctx, container.Name, of[0].ID)
		switch {
		case errors.Is(err, errHidden) && e.mayHaveEnded(pod, of[0].ID):
			undecided = container.Name
		case err != nil:
			why[container.Name] = err.Error()
		}
	}
	return why, undecided
}

// mayHaveEnded reports whether an instance without a process, which the pod's status still calls running, may have
// ended a moment ago: only if processes of other containers are visible at all, and only for missingPatience.
func (e *executor) mayHaveEnded(pod *corev1.Pod, id identity.ContainerID) bool {
	if share := pod.Spec.ShareProcessNamespace; !pod.Spec.HostPID && (share == nil || !*share) {
		return false
	}
	now := time.Now()
	since, known := e.missing[id]
	if !known {
		e.missing[id], since = now, now
	}
	return now.Sub(since) < missingPatience
}

// begin stops an instance in its own goroutine, because a stop can take the whole grace period.
func (e *executor) begin(ctx context.Context, pod *corev1.Pod, stop crr.Stop) {
	act := e.acts[stop.Container]
	act.Running = true
	e.acts[stop.Container] = act
	e.busy = true
	uid := e.uid
	e.logger.Info("stopping container", "container", stop.Container, "id", stop.ID.String(), "grace", stop.Grace)
	go func() {
		wanted := func() error { return e.wanted(uid) }
		e.ended <- stopped{uid, stop.Container, plugin.Safely(e.guard, Name, func() error { return e.stop(ctx, pod, stop, wanted) })}
	}()
}

// wanted returns an error if nothing may be done for a request any more. Any goroutine may call it.
func (e *executor) wanted(uid string) error {
	request := e.first.Load()
	if request != nil && string(request.UID) != uid {
		request = nil
	}
	return crr.MayAct(request, e.clockOffset(), time.Now())
}

// end records the result of a stop.
func (e *executor) end(s stopped) {
	e.busy = false
	if s.err != nil {
		e.logger.Warn("container not stopped", "container", s.container, "err", s.err)
	}
	if s.uid != e.uid {
		return
	}
	act := e.acts[s.container]
	act.Running, act.Done, act.Err = false, time.Now(), ""
	if s.err != nil {
		act.Err = s.err.Error()
		act.Failures++
	} else {
		act.Failures = 0
	}
	e.acts[s.container] = act
}

// write stores the status if it differs. It never writes a completed request.
func (e *executor) write(ctx context.Context, request *crr.Request, status crr.Status) (*crr.Request, error) {
	if !e.requests.KeepsConditions() {
		status.Conditions = request.Status.Conditions
	}
	if crr.Completed(request) || equality.Semantic.DeepEqual(request.Status, status) {
		return request, nil
	}
	return e.requests.WriteStatus(ctx, request, status)
}
