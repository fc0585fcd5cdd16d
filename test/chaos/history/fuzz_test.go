package history_test

import (
	"bytes"
	"testing"

	"github.com/refit-project/refit/test/chaos/history"
	"github.com/refit-project/refit/test/chaos/history/entry"
	"github.com/refit-project/refit/test/chaos/history/model"
	"github.com/refit-project/refit/test/chaos/history/verdict"
)

const auditLine = `{"stage":"ResponseComplete","verb":"patch","user":{"username":"u","extra":{"authentication.kubernetes.io/node-name":["node-1"]}},` +
	`"objectRef":{"resource":"pods","namespace":"n","name":"p","subresource":"status"},"responseStatus":{"code":200},` +
	`"responseObject":{"kind":"Pod","apiVersion":"v1","metadata":{"uid":"x"}},"requestReceivedTimestamp":"2026-11-21T10:00:00.000001Z","stageTimestamp":"2026-11-21T10:00:01.5Z"}` + "\n"

func FuzzParse(f *testing.F) {
	f.Add([]byte(auditLine))
	f.Add([]byte(`{"time":"2026-11-21T10:00:00Z","method":"StopContainer","container_id":"c1","timeout":3,"event":"start","kind":"x"}` + "\n"))
	f.Add([]byte(`{"time":"2026-11-21T10:00:00Z","event":"ADDED","kind":"Deployment","object":{"metadata":{"namespace":"n"},"spec":{"selector":{"matchLabels":{"a":"b"}}}}}` + "\n"))
	f.Add([]byte(`{"time":"2026-11-21T10:00:00Z","event":"ADDED","kind":"EndpointSlice","object":{"endpoints":[{"targetRef":{"uid":"x"}}]}}` + "\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var records model.Records
		var err error
		if records.Writes, records.Broken, err = entry.ParseAudit("a", bytes.NewReader(b)); err != nil {
			return
		}
		records.Calls, _ = entry.ParseCalls("c", bytes.NewReader(b))
		records.Signals, _ = entry.ParseSignals("s", bytes.NewReader(b))
		records.Faults, _ = entry.ParseFaults("f", bytes.NewReader(b))
		records.Watched, _ = entry.ParseWatched("w", bytes.NewReader(b))
		history.Check(records, verdict.Options{})
	})
}
