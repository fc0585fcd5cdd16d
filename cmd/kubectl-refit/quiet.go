package main

import (
	"os"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// quiet turns off the logs of client libraries: commands report errors themselves.
func quiet() {
	klog.SetLogger(logr.Discard())
	log.SetLogger(logr.Discard())
}

// warnings prints the warnings of the API server as kubectl does, each once.
var warnings = rest.NewWarningWriter(os.Stderr, rest.WarningWriterOptions{Deduplicate: true})
