// Package plugin runs the sidecar's plugins.
//
// It contains: the interface of a plugin (Plugin), its environment (Host), and the Manager, which starts plugins in boot
// order, isolates them from each other, restarts ended ones, and stops them in reverse order. What a plugin does must stay
// out, and so must the reading of the configuration.
package plugin
