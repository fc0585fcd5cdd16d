// Package inpod is the plugin hot_update: it takes requests for other files by HTTP, from a ConfigMap or Secret or from a
// mounted volume, applies them with the package hotupdate, and reports the outcome.
//
// It contains: its configuration, the HTTP interface of the KEP, triggers, the record of accepted files for other pods of
// the workload (record) and the restore from it. How files are fetched, swapped and rolled back, and how a process is
// found, must stay out.
package inpod
