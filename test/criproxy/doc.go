// Package criproxy is a proxy between a CRI client under test and the real runtime: it passes every
// call on unread, runtime and image service alike, writes down what was called, and does wrong what
// a faults file tells it to. End-to-end tests count stops by its record and not by what the daemon
// says of itself.
//
// It is for tests and knows nothing of Refit.
package criproxy
