// Package config reads the sidecar's configuration file strictly: a misspelt key or a value of the wrong type is an error
// with its line and a suggestion.
//
// It contains: parsing and checking against the Go types of the configuration, template expressions, and storageConfig, the
// part of the configuration that plugins share. Watching the file and the effects of the configuration must stay out.
//
// Keys are written in camelCase and read case-insensitively, because the reference implementation reads some of them in
// lower case only.
package config
