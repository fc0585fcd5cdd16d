package credentialprovider

import (
	"strings"
	"testing"
)

// FuzzRead feeds what a plugin might answer: an error or an answer, never a panic, and never a password in the error.
func FuzzRead(f *testing.F) {
	f.Add(`{"kind":"CredentialProviderResponse","apiVersion":"credentialprovider.kubelet.k8s.io/v1","cacheKeyType":"Image","auth":{"a":{"password":"hunter2"}}}`)
	f.Add(`{"cacheDuration":"hunter2"}`)
	f.Add(`{"auth":{"hunter2":null},"cacheKeyType":"hunter2"}`)
	f.Fuzz(func(t *testing.T, text string) {
		said, err := read([]byte(text))
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Error(err)
		}
		said.logins()
	})
}

func FuzzConfiguration(f *testing.F) {
	f.Add("apiVersion: kubelet.config.k8s.io/v1\nkind: CredentialProviderConfig\nproviders:\n- name: a\n  matchImages: [b]\n")
	f.Add("providers: [{}]")
	f.Fuzz(func(t *testing.T, text string) {
		config, err := parse([]byte(text))
		for _, p := range config.Providers {
			if err == nil && (strings.Contains(p.Name, "/") || len(p.MatchImages) == 0) {
				t.Errorf("%+v", p)
			}
		}
	})
}
