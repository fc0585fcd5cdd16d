// Package output writes results to objects of the API, as the sidecar's configuration asks for: labels, annotations,
// conditions and fields, and also Events and metrics.
//
// It has the places that a result can be written to as values (Output), the smallest patch that changes an object as wanted
// (Diff), and the Writer, a result.Destination for the results of several sources on one object. The API is the interface
// Patcher; clients, probing and configuration files do not belong here.
package output
