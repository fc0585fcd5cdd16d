// Package update is the plugin hot_update: it takes requests for other files, by HTTP, from a ConfigMap or Secret
// or from a mounted volume, has the room hotupdate carry them out, and tells what became of them.
//
// It contains: its configuration, the HTTP interface of the KEP, triggers, what is remembered for other pods
// of the workload (record) and the restoring of it. How files are fetched, swapped and rolled back must stay
// out, nor how a process is found.
package update
