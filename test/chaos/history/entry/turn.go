package entry

import (
	"errors"
	"io"
	"time"
)

// Turn is a change of what the application of a probed pod says of itself. The run makes it.
type Turn struct {
	At     time.Time `json:"time"`
	PodUID string    `json:"podUID"`
	// Asked says how the probe asks.
	Asked string `json:"asked"`
	Up    bool   `json:"up"`

	// Line of the record.
	Line Line `json:"-"`
}

// AskedByExec is a probe through the runtime: where that does not answer in time, that is the probe's answer.
const AskedByExec = "exec"

// ParseTurns reads the record of the turns.
func ParseTurns(record string, in io.Reader) ([]Turn, error) {
	return parse(record, in, func(turn Turn, line Line) (*Turn, error) {
		if turn.At.IsZero() || turn.PodUID == "" {
			return nil, errors.New("turn: want a time and a pod")
		}
		turn.Line = line.of(turn.At, "pod %s says %s of itself", turn.PodUID, map[bool]string{true: "up", false: "down"}[turn.Up])
		return &turn, nil
	})
}
