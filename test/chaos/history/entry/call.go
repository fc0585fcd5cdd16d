package entry

import (
	"encoding/json"
	"fmt"
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
	var calls []Call
	err := eachLine(record, in, func(number int, text []byte) error {
		var line struct {
			Time        time.Time `json:"time"`
			Method      string    `json:"method"`
			ContainerID string    `json:"container_id"`
			Image       string    `json:"image"`
			Timeout     *int64    `json:"timeout"`
			DurationMS  float64   `json:"duration_ms"`
			Code        string    `json:"code"`
		}
		if err := json.Unmarshal(text, &line); err != nil {
			return err
		}
		if line.ContainerID == "" && line.Method != MethodPull {
			return nil
		}
		call := Call{
			Method: line.Method, ContainerID: line.ContainerID, Image: line.Image, Begin: line.Time, Code: line.Code,
			End: line.Time.Add(time.Duration(line.DurationMS * float64(time.Millisecond))),
		}
		if line.Timeout != nil {
			call.Grace = time.Duration(*line.Timeout) * time.Second
		}
		call.Line = Line{Record: record, Number: number, Time: call.Begin, Text: fmt.Sprintf("%s %s grace %s: %s after %s",
			call.Method, Short(call.ContainerID), call.Grace, call.Code, call.End.Sub(call.Begin).Round(time.Millisecond))}
		if call.Method == MethodPull {
			call.Text = fmt.Sprintf("%s %s: %s after %s", call.Method, call.Image, call.Code, call.End.Sub(call.Begin).Round(time.Millisecond))
		}
		calls = append(calls, call)
		return nil
	})
	return calls, err
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
