package endpoint

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/refit-project/refit/probe"
)

// expecting is a prober that fails if the result is not the expected one.
type expecting struct {
	prober    probe.Prober
	fieldType string
	value     any
}

// Close closes the wrapped prober.
func (e expecting) Close() error {
	probe.Close(e.prober)
	return nil
}

// Probe implements probe.Prober.
func (e expecting) Probe(ctx context.Context) probe.Outcome {
	outcome := e.prober.Probe(ctx)
	if outcome.State != probe.Succeeded {
		return outcome
	}
	var err error
	switch e.fieldType {
	case "number":
		_, err = strconv.ParseFloat(outcome.Message, 64)
	case "boolean":
		if outcome.Message != "true" && outcome.Message != "false" {
			err = strconv.ErrSyntax
		}
	}
	if err != nil {
		return probe.Outcome{State: probe.Failed, Message: fmt.Sprintf("result %q is no %s", outcome.Message, e.fieldType)}
	}
	if e.value == nil {
		return outcome
	}
	want, ok := e.value.(string)
	if !ok {
		b, err := json.Marshal(e.value)
		if err != nil {
			return probe.Outcome{State: probe.Unknown, Message: err.Error()}
		}
		want = string(b)
	}
	if outcome.Message != want {
		return probe.Outcome{State: probe.Failed, Message: fmt.Sprintf("result %q, want %q", outcome.Message, want)}
	}
	return outcome
}
