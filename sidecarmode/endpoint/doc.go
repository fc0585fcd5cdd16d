// Package endpoint is the configuration of one probed endpoint, which the plugins http_probe and hot_update share, and
// its results.
//
// It contains: the translation from configuration to a probe of the room probe, and from its result to an entry of
// the room result. Running probes and writing results must stay out.
package endpoint
