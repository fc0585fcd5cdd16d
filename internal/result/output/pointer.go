package output

import (
	"fmt"
	"strings"
)

// ParsePointer splits a JSON Pointer (RFC 6901) into its unescaped tokens. It refuses the whole document (""), which a
// result must not replace, the element after the last ("-"), which is another place at every write, and members that
// identify an object.
func ParsePointer(pointer string) ([]string, error) {
	tokens := strings.Split(pointer, "/")
	if len(tokens) < 2 || tokens[0] != "" {
		return nil, fmt.Errorf("JSON pointer %q: want /member/member", pointer)
	}
	tokens = tokens[1:]
	for i, token := range tokens {
		if token == "" || token == "-" {
			return nil, fmt.Errorf("JSON pointer %q: element %q is not allowed", pointer, token)
		}
		if strings.Contains(strings.NewReplacer("~0", "", "~1", "").Replace(token), "~") {
			return nil, fmt.Errorf("JSON pointer %q: ~ must be written ~0 and / in a name ~1", pointer)
		}
		tokens[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
	}
	inMetadata := tokens[0] == "metadata" && len(tokens) > 2 && (tokens[1] == "labels" || tokens[1] == "annotations")
	if tokens[0] == "apiVersion" || tokens[0] == "kind" || (tokens[0] == "metadata" && !inMetadata) {
		return nil, fmt.Errorf("JSON pointer %q: of metadata only labels and annotations can be written", pointer)
	}
	return tokens, nil
}

// FormatPointer is the inverse of ParsePointer.
func FormatPointer(tokens []string) string {
	var b strings.Builder
	for _, token := range tokens {
		b.WriteByte('/')
		b.WriteString(strings.NewReplacer("~", "~0", "/", "~1").Replace(token))
	}
	return b.String()
}
