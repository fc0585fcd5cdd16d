package image

import "errors"

// Errors of a pull that a command waits for.
var (
	// ErrNotBegun means that no daemon in the cluster has begun to pull the image.
	ErrNotBegun = errors.New("nothing pulls images before they are needed")
	// ErrFailed means that the image could not be pulled.
	ErrFailed = errors.New("the pull failed")
)
