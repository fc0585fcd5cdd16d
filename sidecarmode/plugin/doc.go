// Package plugin runs the sidecar's plugins.
//
// In the room are: what a plugin is (Plugin), what it is given (Host), and the Manager, which starts plugins in
// boot order, isolates them from each other, starts those again that ended, and stops them in reverse. What a
// plugin does may not enter, nor how the configuration is read.
package plugin
