// Package plugin runs the sidecar's plugins.
//
// It contains: what a plugin is (Plugin), what it is given (Host), and the Manager, which starts plugins in
// boot order, isolates them from each other, starts those again that ended, and stops them in reverse. What a
// plugin does must stay out, and so must the reading of the configuration.
package plugin
