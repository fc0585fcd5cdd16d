// Package config reads the sidecar's configuration file, strictly: what is misspelt or of another type than wanted
// is an error that says where, and what was probably meant.
//
// It contains: parsing and checking against the Go types of the configuration, template expressions, and the
// part of the configuration that plugins share, storageConfig. Watching the file and what the configuration
// does must stay out.
//
// Keys are written in camelCase and read in any case of letters, since the reference implementation reads some
// of them in lower case only.
package config
