// Package httpprobe is the plugin http_probe. It probes endpoints periodically, over HTTP or by another kind of probe,
// and passes the results to package result.
//
// It contains: the plugin and the list of endpoints. Package endpoint has the configuration of one endpoint. How probes
// run and how results are written must stay out.
package httpprobe
