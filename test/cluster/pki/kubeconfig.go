package pki

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// authorityFile is the certificate of the authority that signs for the API server.
const authorityFile = "ca.crt"

// Kubeconfig writes a kubeconfig file for the certificate called name, complete in itself.
func (a *Authority) Kubeconfig(path, server, name string) error {
	content := map[string]string{}
	for _, file := range []string{authorityFile, name + ".crt", name + ".key"} {
		data, err := os.ReadFile(filepath.Join(a.dir, file))
		if err != nil {
			return fmt.Errorf("kubeconfig for %s: %w", name, err)
		}
		content[file] = base64.StdEncoding.EncodeToString(data)
	}
	type object = map[string]any
	// kubeconfig files are YAML, of which JSON is a part.
	config, err := json.MarshalIndent(object{
		"apiVersion":      "v1",
		"kind":            "Config",
		"current-context": "refit",
		"clusters": []object{{"name": "refit", "cluster": object{
			"server":                     server,
			"certificate-authority-data": content[authorityFile],
		}}},
		"users": []object{{"name": name, "user": object{
			"client-certificate-data": content[name+".crt"],
			"client-key-data":         content[name+".key"],
		}}},
		"contexts": []object{{"name": "refit", "context": object{"cluster": "refit", "user": name}}},
	}, "", "  ")
	if err != nil {
		return fmt.Errorf("kubeconfig for %s: %w", name, err)
	}
	if err := os.WriteFile(path, append(config, '\n'), 0o600); err != nil {
		return fmt.Errorf("kubeconfig for %s: %w", name, err)
	}
	return nil
}
