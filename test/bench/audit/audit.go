// Package audit counts what Refit has written by the audit log of the API server.
package audit

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// users is the prefix of the service accounts of the daemon and the manager.
const users = "system:serviceaccount:refit-system:"

// Write is a write of Refit. Attempts that were refused count as well: they cost as much.
type Write struct {
	Who, Verb, Resource, Namespace string
}

// String is "WHO VERB RESOURCE".
func (w Write) String() string { return w.Who + " " + w.Verb + " " + w.Resource }

// IsEvent reports whether an Event was written.
func (w Write) IsEvent() bool { return w.Resource == "events" }

// event is what is read of a line (audit.k8s.io/v1 Event).
type event struct {
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
}

// Size is the offset at which the next line of the log begins.
func Size(path string) (int64, error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, fmt.Errorf("read audit log: %w", err)
	}
	return info.Size(), nil
}

// Since returns the writes of Refit in the log from an offset on.
func Since(path string, offset int64) ([]Write, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read audit log: %w", err)
	}
	defer func() { _ = file.Close() }()
	if _, err := file.Seek(offset, io.SeekStart); err != nil {
		return nil, fmt.Errorf("read audit log: %w", err)
	}
	return read(file)
}

func read(log io.Reader) ([]Write, error) {
	var all []Write
	for lines := bufio.NewReader(log); ; {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return all, nil // a line without an end is still being written
		}
		var of event
		if err == nil {
			err = json.Unmarshal(line, &of)
		}
		if err != nil {
			return nil, fmt.Errorf("read audit log: %w", err)
		}
		if write, ok := of.write(); ok {
			all = append(all, write)
		}
	}
}

// write is the write that an event is about, if it is one of Refit.
func (e *event) write() (Write, bool) {
	who, refit := strings.CutPrefix(e.User.Username, users)
	if !refit || e.Stage != "ResponseComplete" || !slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, e.Verb) {
		return Write{}, false
	}
	if e.ObjectRef.Resource == "tokenreviews" || e.ObjectRef.Resource == "subjectaccessreviews" { // reviews of clients that read metrics
		return Write{}, false
	}
	resource := e.ObjectRef.Resource
	if e.ObjectRef.Subresource != "" {
		resource += "/" + e.ObjectRef.Subresource
	}
	return Write{Who: who, Verb: e.Verb, Resource: resource, Namespace: e.ObjectRef.Namespace}, true
}
