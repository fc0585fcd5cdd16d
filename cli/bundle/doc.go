// Package bundle writes what somebody needs who looks for the cause of a problem of Refit into one archive: objects, Events and logs. It
// reads no Secrets and no ConfigMaps, and removes the values of environment variables. Decisions must stay out.
package bundle
