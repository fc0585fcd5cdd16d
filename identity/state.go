package identity

// State of one container instance, as CRI's ContainerState has it.
type State int

// The zero State is StateUnknown: the runtime has lost track of the instance.
const (
	StateUnknown State = iota
	StateCreated
	StateRunning
	StateExited
)

func (s State) String() string {
	switch s {
	case StateCreated:
		return "created"
	case StateRunning:
		return "running"
	case StateExited:
		return "exited"
	default:
		return "unknown"
	}
}
