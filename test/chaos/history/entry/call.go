package entry

import (
	"io"
	"strings"
	"time"
)

// Call is one call of the daemon to the container runtime, as the CRI proxy wrote it down.
type Call struct {
	Line
	Method      string
	ContainerID string // without the runtime's name
	Image       string // of a pull
	Grace       time.Duration
	Begin, End  time.Time
	Code        string // as gRPC names it
}

// MethodPull is the call by which an image is pulled.
const MethodPull = "PullImage"

// ParseCalls reads the record of the CRI proxy (test/criproxy, Line). Calls that concern no container are left out,
// except pulls of images.
func ParseCalls(record string, in io.Reader) ([]Call, error) {
	type written struct {
		Time        time.Time `json:"time"`
		Method      string    `json:"method"`
		ContainerID string    `json:"container_id"`
		Image       string    `json:"image"`
		Timeout     int64     `json:"timeout"`
		DurationMS  float64   `json:"duration_ms"`
		Code        string    `json:"code"`
	}
	return parse(record, in, func(w written, line Line) (*Call, error) {
		if w.ContainerID == "" && w.Method != MethodPull {
			return nil, nil
		}
		took := time.Duration(w.DurationMS * float64(time.Millisecond))
		call := &Call{
			Method: w.Method, ContainerID: w.ContainerID, Image: w.Image, Grace: time.Duration(w.Timeout) * time.Second,
			Begin: w.Time, End: w.Time.Add(took), Code: w.Code,
		}
		if call.Method == MethodPull {
			call.Line = line.of(call.Begin, "%s %s: %s after %s", call.Method, call.Image, call.Code, took.Round(time.Millisecond))
		} else {
			call.Line = line.of(call.Begin, "%s %s grace %s: %s after %s", call.Method, Short(call.ContainerID), call.Grace, call.Code, took.Round(time.Millisecond))
		}
		return call, nil
	})
}

// Changes reports whether the call does something to the container rather than look at it.
func (c Call) Changes() bool {
	return c.Method == "StopContainer" || c.Method == "RemoveContainer" || strings.HasPrefix(c.Method, "Exec")
}

// BareID is a container's ID without the runtime's name in front.
func BareID(id string) string {
	if _, bare, ok := strings.Cut(id, "://"); ok {
		return bare
	}
	return id
}

// Short is the beginning of a bare ID.
func Short(id string) string {
	const most = 13
	id = BareID(id)
	if len(id) > most {
		return id[:most]
	}
	return id
}
