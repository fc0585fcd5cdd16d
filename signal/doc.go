// Package signal finds processes in a proc file system and signals exactly the selected one.
//
// It contains: FS with an injected root, selectors over the files in /proc of a process, the container of a process, its
// identity (PID and start time), and sending through pidfd. Starting other programs (ps, kill), choosing what to signal
// when, and the Kubernetes API must stay out.
//
// A process controls most of what /proc shows of it: it can write its comm and command line. In a PID namespace shared by a
// pod every container can do so. A selector that matches more than one process is therefore an error unless requested
// otherwise, and text from processes is always quoted. Field numbers and file names are as in proc(5).
package signal
