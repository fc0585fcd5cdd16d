// Package doctor checks an installation of Refit: what is there, what answers, and what stands in the way. It changes nothing.
package doctor
