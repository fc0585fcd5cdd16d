package signal

// Kernel lets tests outside of the package record what would be sent.
type Kernel = kernel

// WithKernel gives f another kernel to send through, and takes its tree for our own namespace.
func (f *FS) WithKernel(k Kernel) *FS {
	f.kernel, f.ours = k, true
	return f
}
