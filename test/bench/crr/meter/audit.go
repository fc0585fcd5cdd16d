package meter

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
)

// auditEvent is what is read of a line of the API server's audit log (audit.k8s.io/v1 Event).
type auditEvent struct {
	Stage string `json:"stage"`
	Verb  string `json:"verb"`
	User  struct {
		Username string `json:"username"`
	} `json:"user"`
	ObjectRef struct {
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Namespace   string `json:"namespace"`
	} `json:"objectRef"`
	ResponseStatus struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
}

// refitUsers prefixes the service accounts of the daemon and the manager.
const refitUsers = "system:serviceaccount:refit-system:"

// countWrites counts what Refit wrote in the benchmark's namespace, by "WHO VERB RESOURCE". Attempts that were
// refused count as well: they cost as much.
func countWrites(log io.Reader, namespace string) (map[string]int, error) {
	counts := map[string]int{}
	lines := bufio.NewReader(log)
	for {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			return counts, nil // what has no end is still being written
		}
		if err != nil {
			return nil, fmt.Errorf("read audit log: %w", err)
		}
		var event auditEvent
		if err := json.Unmarshal(line, &event); err != nil {
			return nil, fmt.Errorf("read audit log: %w", err)
		}
		who, refit := strings.CutPrefix(event.User.Username, refitUsers)
		if !refit || event.Stage != "ResponseComplete" || event.ObjectRef.Namespace != namespace || !writes(event.Verb) {
			continue
		}
		what := event.ObjectRef.Resource
		if event.ObjectRef.Subresource != "" {
			what += "/" + event.ObjectRef.Subresource
		}
		counts[who+" "+event.Verb+" "+what]++
	}
}

func writes(verb string) bool {
	switch verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return true
	default:
		return false
	}
}

// splitWrites sums up the writes to requests and pods, and apart from them the Events.
func splitWrites(counts map[string]int) (objects, events int) {
	for key, n := range counts {
		if strings.HasSuffix(key, " events") {
			events += n
		} else {
			objects += n
		}
	}
	return objects, events
}

// writesSince reads the audit log from an offset on.
func writesSince(path, namespace string, offset int64) (map[string]int, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open audit log: %w", err)
	}
	defer func() { _ = file.Close() }()
	if _, err := file.Seek(offset, io.SeekStart); err != nil {
		return nil, fmt.Errorf("open audit log: %w", err)
	}
	return countWrites(file, namespace)
}
