package contentstore

import "testing"

func FuzzParseManifest(f *testing.F) {
	f.Add([]byte(`{"config":{"digest":"sha256:a","size":5},"layers":[{"digest":"sha256:b","size":7},{"size":-1}]}`))
	f.Add([]byte(`{"layers":[{"size":9223372036854775807},{"size":9223372036854775807}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		blobs, err := parseManifest(data)
		var sum int64
		for _, b := range blobs {
			sum += b.Size
		}
		if err == nil && sum < 0 {
			t.Errorf("%d bytes in %q", sum, data)
		}
	})
}
