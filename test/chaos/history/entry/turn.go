package entry

import (
	"encoding/json"
	"errors"
	"fmt"
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
	var turns []Turn
	err := eachLine(record, in, func(number int, text []byte) error {
		var turn Turn
		if err := json.Unmarshal(text, &turn); err != nil {
			return err
		}
		if turn.At.IsZero() || turn.PodUID == "" {
			return errors.New("turn: want a time and a pod")
		}
		said := "down"
		if turn.Up {
			said = "up"
		}
		turn.Line = Line{Record: record, Number: number, Time: turn.At, Text: fmt.Sprintf("pod %s says %s of itself", turn.PodUID, said)}
		turns = append(turns, turn)
		return nil
	})
	return turns, err
}
