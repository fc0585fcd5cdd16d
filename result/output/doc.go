// Package output writes results to objects of the API, as the sidecar's configuration asks for: labels, annotations,
// conditions and fields, and beside them Events and metrics.
//
// It has the places that a result can be written to as values (Output), the smallest patch that brings an object to
// what is wanted (Diff), and the Writer, a result.Destination for what several sources want of one object. The API is
// behind the port Patcher; clients, probing and configuration files do not belong here.
package output
