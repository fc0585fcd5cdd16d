package identity

// State is the state of one container instance, as in CRI's ContainerState.
type State int

// The zero State is StateUnknown: the runtime does not know the state of the instance.
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
