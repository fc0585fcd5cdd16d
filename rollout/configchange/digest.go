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

// iterations of PBKDF2, as recommended by OWASP for SHA-256. A weak password must not be easy to guess from its digest,
// because more users may read a RestartTrigger than a Secret, and etcd may encrypt only Secrets.
const iterations = 600_000

// DigestConfigMap returns a digest of the data of a ConfigMap.
func DigestConfigMap(object *corev1.ConfigMap) string {
	texts := make(map[string][]byte, len(object.Data))
	for key, value := range object.Data {
		texts[key] = []byte(value)
	}
	sum := sha256.Sum256(canonical(texts, object.BinaryData))
	return hex.EncodeToString(sum[:])
}

// DigestSecret returns a digest of the data of a Secret. It takes a tenth of a second, so that guessing the data is
// expensive. salt must be unique for each RestartTrigger.
func DigestSecret(object *corev1.Secret, salt string) (string, error) {
	data := sha256.Sum256(canonical(object.Data))
	sum, err := pbkdf2.Key(sha256.New, string(data[:]), []byte(salt), iterations, sha256.Size)
	if err != nil {
		return "", fmt.Errorf("digest of Secret %s: %w", object.Name, err)
	}
	return hex.EncodeToString(sum), nil
}

// canonical returns a unique text for each content: sorted keys, everything quoted.
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
