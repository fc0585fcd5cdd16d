package configchange

import (
	"crypto/pbkdf2"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// iterations of PBKDF2, as OWASP recommends for SHA-256: a digest of a weak password must not make it easy to guess, since
// more users may read a RestartTrigger than a Secret, and etcd may store only Secrets encrypted.
const iterations = 600_000

// DigestConfigMap is a digest of the data of a ConfigMap.
func DigestConfigMap(object *corev1.ConfigMap) string {
	texts := make(map[string][]byte, len(object.Data))
	for key, value := range object.Data {
		texts[key] = []byte(value)
	}
	sum := sha256.Sum256(canonical(texts, object.BinaryData))
	return hex.EncodeToString(sum[:])
}

// DigestSecret is a digest of the data of a Secret from which the data is expensive to guess: it takes a tenth of a second.
// Salt is a value that no other RestartTrigger has.
func DigestSecret(object *corev1.Secret, salt string) (string, error) {
	data := sha256.Sum256(canonical(object.Data))
	sum, err := pbkdf2.Key(sha256.New, string(data[:]), []byte(salt), iterations, sha256.Size)
	if err != nil {
		return "", fmt.Errorf("digest of Secret %s: %w", object.Name, err)
	}
	return hex.EncodeToString(sum), nil
}

// canonical is one text for each content: keys in order, all quoted.
func canonical(contents ...map[string][]byte) []byte {
	var out []byte
	for _, data := range contents {
		for _, key := range slices.Sorted(maps.Keys(data)) {
			out = fmt.Appendf(out, "%q=%q\n", key, data[key])
		}
		out = append(out, "--\n"...)
	}
	return out
}
