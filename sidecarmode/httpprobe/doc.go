// Package httpprobe is the plugin http_probe: it probes endpoints periodically, over HTTP or by another kind of probe, and
// hands the results to the room result.
//
// It contains: the plugin and the list of endpoints. The configuration of one endpoint is in the room endpoint; how
// a probe runs and how a result is written must stay out.
package httpprobe
