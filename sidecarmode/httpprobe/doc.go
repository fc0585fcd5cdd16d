// Package httpprobe is the plugin http_probe: it asks endpoints of the pod at their times, by HTTP or one of the
// other ways of the room probe, and hands what it learns to the room result.
//
// In the room are: its configuration, and the translation from there to probes and from their results to entries.
// How one asks and how one writes may not enter.
package httpprobe
