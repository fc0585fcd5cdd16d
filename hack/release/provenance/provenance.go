// Package provenance states how the files of a release were built: an in-toto statement with SLSA provenance v1.
package provenance

import (
	"bytes"
	"encoding/json"
	"fmt"

	slsa "github.com/in-toto/attestation/go/predicates/provenance/v1"
	intoto "github.com/in-toto/attestation/go/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"
)

const (
	// PayloadType is the type of in-toto statements in a DSSE envelope.
	PayloadType   = "application/vnd.in-toto+json"
	predicateType = "https://slsa.dev/provenance/v1"
	repository    = "https://github.com/refit-project/refit"
	buildType     = repository + "/blob/main/docs/release.md#build-type"
)

// Subject is a file or an image, with its SHA-256 digest in hexadecimal.
type Subject struct{ Name, SHA256 string }

// Build is what was built, from what and by whom.
type Build struct {
	Version, Commit string
	Platforms       []string
	// GoVersion is the version of the compiler, Flags are its flags.
	GoVersion string
	Flags     []string
	// Builder is the URI of who ran the build, Invocation the URI of the run, if it has one.
	Builder, Invocation string
	Subjects            []Subject
}

// Statement returns the statement as JSON. The same build gives the same bytes: it has no times.
func Statement(build Build) ([]byte, error) {
	predicate, err := predicate(build)
	if err != nil {
		return nil, fmt.Errorf("provenance: %w", err)
	}
	statement := &intoto.Statement{Type: intoto.StatementTypeUri, PredicateType: predicateType, Predicate: predicate}
	for _, subject := range build.Subjects {
		statement.Subject = append(statement.Subject, &intoto.ResourceDescriptor{
			Name: subject.Name, Digest: map[string]string{"sha256": subject.SHA256},
		})
	}
	if err := statement.Validate(); err != nil {
		return nil, fmt.Errorf("provenance: %w", err)
	}
	text, err := protojson.Marshal(statement)
	if err != nil {
		return nil, fmt.Errorf("provenance: %w", err)
	}
	// protojson adds blanks at random, on purpose.
	var out bytes.Buffer
	if err := json.Indent(&out, text, "", " "); err != nil {
		return nil, fmt.Errorf("provenance: %w", err)
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

func predicate(build Build) (*structpb.Struct, error) {
	external, err := structpb.NewStruct(map[string]any{
		"repository": repository, "version": build.Version, "platforms": anys(build.Platforms),
	})
	if err != nil {
		return nil, err
	}
	internal, err := structpb.NewStruct(map[string]any{"goVersion": build.GoVersion, "goBuildFlags": anys(build.Flags)})
	if err != nil {
		return nil, err
	}
	of := &slsa.Provenance{
		BuildDefinition: &slsa.BuildDefinition{
			BuildType: buildType, ExternalParameters: external, InternalParameters: internal,
			ResolvedDependencies: []*intoto.ResourceDescriptor{
				{Uri: "git+" + repository + "@" + build.Version, Digest: map[string]string{"gitCommit": build.Commit}},
			},
		},
		RunDetails: &slsa.RunDetails{Builder: &slsa.Builder{Id: build.Builder}},
	}
	if build.Invocation != "" {
		of.RunDetails.Metadata = &slsa.BuildMetadata{InvocationId: build.Invocation}
	}
	if err := of.Validate(); err != nil {
		return nil, err
	}
	text, err := protojson.Marshal(of)
	if err != nil {
		return nil, err
	}
	predicate := &structpb.Struct{}
	return predicate, protojson.Unmarshal(text, predicate)
}

func anys(values []string) []any {
	var all []any
	for _, value := range values {
		all = append(all, value)
	}
	return all
}

// Subjects of a statement, by name.
func Subjects(statement []byte) (map[string]string, error) {
	read := &intoto.Statement{}
	if err := protojson.Unmarshal(statement, read); err != nil {
		return nil, fmt.Errorf("read provenance: %w", err)
	}
	if err := read.Validate(); err != nil {
		return nil, fmt.Errorf("read provenance: %w", err)
	}
	subjects := map[string]string{}
	for _, subject := range read.GetSubject() {
		subjects[subject.GetName()] = subject.GetDigest()["sha256"]
	}
	return subjects, nil
}

// Predicate of a statement: everything but its subjects.
func Predicate(statement []byte) ([]byte, error) {
	read := &intoto.Statement{}
	if err := protojson.Unmarshal(statement, read); err != nil {
		return nil, fmt.Errorf("read provenance: %w", err)
	}
	text, err := protojson.Marshal(read.GetPredicate())
	if err != nil {
		return nil, fmt.Errorf("read provenance: %w", err)
	}
	return text, nil
}
