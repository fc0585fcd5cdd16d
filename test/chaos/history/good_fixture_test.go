package history_test

import "github.com/refit-project/refit/api/v1beta1"

// begin admits a request for the container and has the daemon record it.
func (s *fixture) begin(created, recorded float64, request, podUID, container string, change ...func(*v1beta1.ContainerRecreateRequest)) {
	s.t.Helper()
	s.create(created, request, podUID, container, change...)
	s.status(recorded, request, recreating(container))
}

// stop is a stop of the container, of which its application gets SIGTERM.
func (s *fixture) stop(seconds float64, podUID, container string) {
	s.t.Helper()
	s.call(seconds, "StopContainer", container, "OK", 0.1)
	s.app(seconds+0.01, podUID, "SIGTERM")
}

// start is a start of the container, which kubelet reports.
func (s *fixture) start(seconds float64, podUID, container string) {
	s.t.Helper()
	s.app(seconds, podUID, "start")
	s.pod(seconds+0.1, podUID, container, true)
}

// complete ends the request; it has succeeded if the message is empty.
func (s *fixture) complete(seconds float64, request, message string) {
	s.t.Helper()
	s.status(seconds, request, completed(seconds, message))
}

// succeed is the start of the container with which the request succeeds.
func (s *fixture) succeed(seconds float64, podUID, container, request string) {
	s.t.Helper()
	s.start(seconds, podUID, container)
	s.complete(seconds+0.2, request, "")
}
