// Package signal finds processes in a proc file system and signals exactly the one that was meant.
//
// It contains: FS with an injected root, selectors over what /proc says of a process, the container
// a process belongs to, its identity (PID and start time), and sending through pidfd. Starting other
// programs (ps, kill), choosing what to signal when, and the Kubernetes API must stay out.
//
// What /proc says of a process is, for the greater part, what that process wants to be said: comm and
// command line are its own to write. In a PID namespace shared by a pod every container writes there. So
// a selector that matches more than one process is an error unless asked otherwise, and text from
// processes is quoted wherever it is shown. Field numbers and file names are those of proc(5).
package signal
