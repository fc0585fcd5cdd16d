package fakecri

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/refit-project/refit/internal/identity"
	"github.com/refit-project/refit/internal/kubelet"
)

// Program is how a container behaves. The zero value runs until it is told to stop and then ends
// at once with exit code 0.
type Program struct {
	StartLatency time.Duration // how long its start takes
	Lifetime     time.Duration // after which it ends by itself; 0: never
	IgnoreTerm   bool          // only SIGKILL ends it
	TermDelay    time.Duration // between SIGTERM and its end
	ExitCode     int32         // unless killed, which gives 137
}

// Container is what RunContainer starts.
type Container struct {
	Name           string
	Image          string
	Program        Program
	RestartCount   uint32
	Hash           string // kubelet's, as the annotation has it
	PreStopHandler string // JSON, as the annotation has it
}

// Instance is one container as the fake knows it.
type Instance struct {
	ID, Name, PodUID, SandboxID string
	State                       runtimeapi.ContainerState
	RestartCount                uint32
	ExitCode                    int32
	CreatedAt                   time.Time
}

type sandbox struct {
	id     string
	config *runtimeapi.PodSandboxConfig
	ip     string
	more   []string // addresses of other IP families
	ready  bool
	made   int64
}

type instance struct {
	id, sandboxID              string
	config                     *runtimeapi.ContainerConfig
	program                    Program
	state                      runtimeapi.ContainerState
	created, started, finished int64
	exitCode                   int32
	termSent                   bool
	exited                     chan struct{}
}

// RunPod makes a ready sandbox. An empty ip is a pod on the host's network; more are its addresses of other IP families.
func (r *Runtime) RunPod(pod identity.Pod, ip string, more ...string) (sandboxID string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.addSandbox(&runtimeapi.PodSandboxConfig{
		Metadata: &runtimeapi.PodSandboxMetadata{Name: pod.Name, Namespace: pod.Namespace, Uid: pod.UID},
		Labels: map[string]string{
			kubelet.LabelPodName:      pod.Name,
			kubelet.LabelPodNamespace: pod.Namespace,
			kubelet.LabelPodUID:       pod.UID,
		},
	}, ip, more...)
}

// RunContainer creates and starts a container in a sandbox of RunPod, labelled as kubelet does.
// Its StartLatency does not count: it runs when RunContainer returns.
func (r *Runtime) RunContainer(sandboxID string, c Container) (id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.sandboxes[sandboxID]
	labels := maps.Clone(s.config.GetLabels())
	labels[kubelet.LabelContainerName] = c.Name
	annotations := map[string]string{kubelet.AnnotationContainerHash: c.Hash}
	if c.PreStopHandler != "" {
		annotations[kubelet.AnnotationPreStopHandler] = c.PreStopHandler
	}
	in := r.addInstance(s, &runtimeapi.ContainerConfig{
		Metadata:    &runtimeapi.ContainerMetadata{Name: c.Name, Attempt: c.RestartCount},
		Image:       &runtimeapi.ImageSpec{Image: c.Image, UserSpecifiedImage: c.Image},
		Labels:      labels,
		Annotations: annotations,
	}, c.Program)
	r.begin(in)
	return in.id
}

// Exit lets a running container end by itself, as a crash does.
func (r *Runtime) Exit(id string, code int32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.end(r.instances[id], code)
}

// Instances is everything there is, oldest first.
func (r *Runtime) Instances() []Instance {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := make([]Instance, 0, len(r.instances))
	for _, in := range r.oldestFirst() {
		list = append(list, r.view(in))
	}
	return list
}

// addSandbox and everything below is called with mu held.
func (r *Runtime) addSandbox(config *runtimeapi.PodSandboxConfig, ip string, more ...string) string {
	s := &sandbox{id: newID(), config: config, ip: ip, more: more, ready: true, made: r.now()}
	r.sandboxes[s.id] = s
	return s.id
}

func (r *Runtime) addInstance(s *sandbox, config *runtimeapi.ContainerConfig, p Program) *instance {
	if config.Annotations == nil {
		config.Annotations = map[string]string{}
	}
	config.Annotations[kubelet.AnnotationRestartCount] = strconv.Itoa(int(config.GetMetadata().GetAttempt()))
	in := &instance{
		id: newID(), sandboxID: s.id, config: config, program: p,
		state: runtimeapi.ContainerState_CONTAINER_CREATED, created: r.now(), exited: make(chan struct{}),
	}
	r.instances[in.id] = in
	r.publish(in, runtimeapi.ContainerEventType_CONTAINER_CREATED_EVENT)
	return in
}

func (r *Runtime) begin(in *instance) {
	in.state, in.started = runtimeapi.ContainerState_CONTAINER_RUNNING, r.now()
	r.publish(in, runtimeapi.ContainerEventType_CONTAINER_STARTED_EVENT)
	if in.program.Lifetime > 0 {
		r.after(in.program.Lifetime, func() { r.Exit(in.id, in.program.ExitCode) })
	}
}

// end of a container that does not run, or is gone, is nothing.
func (r *Runtime) end(in *instance, code int32) {
	if in == nil || in.state != runtimeapi.ContainerState_CONTAINER_RUNNING {
		return
	}
	in.state, in.finished, in.exitCode = runtimeapi.ContainerState_CONTAINER_EXITED, r.now(), code
	close(in.exited)
	r.publish(in, runtimeapi.ContainerEventType_CONTAINER_STOPPED_EVENT)
	r.scheduleRestart(in)
}

func (r *Runtime) remove(in *instance) {
	r.end(in, killed)
	delete(r.instances, in.id)
	r.publish(in, runtimeapi.ContainerEventType_CONTAINER_DELETED_EVENT)
	r.scheduleRestart(in)
}

func (r *Runtime) oldestFirst() []*instance {
	return slices.SortedFunc(maps.Values(r.instances), func(a, b *instance) int {
		return int(a.created - b.created)
	})
}

func (r *Runtime) view(in *instance) Instance {
	return Instance{
		ID: in.id, Name: in.config.GetMetadata().GetName(), SandboxID: in.sandboxID,
		PodUID: in.config.GetLabels()[kubelet.LabelPodUID], State: in.state,
		RestartCount: in.config.GetMetadata().GetAttempt(), ExitCode: in.exitCode,
		CreatedAt: time.Unix(0, in.created),
	}
}

func joined(command ...[]string) string { return strings.Join(slices.Concat(command...), " ") }
