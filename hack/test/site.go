package main

import (
	"context"
	"os/exec"

	"github.com/refit-project/refit/hack/step"
)

// site builds the documents as a site, with mkdocs, which is installed if it is missing. Where that is not possible, as without apt-get or for
// another user than root, this says so and is no failure: TestSiteListsThePages and TestLinksBetweenPagesResolve check most of the same.
func (s *suite) site(ctx context.Context) error {
	if _, err := exec.LookPath("mkdocs"); err != nil {
		install := step.Command{Dir: s.root, Argv: []string{"hack/packages.sh", "mkdocs=mkdocs"}}
		if err := s.report.Run(ctx, "Debian package mkdocs", install); err != nil {
			s.report.Say("site of the documents: NOT BUILT, mkdocs is not installed")
			return nil
		}
	}
	return s.report.Run(ctx, "site of the documents", step.Command{Dir: s.root, Argv: []string{"make", "site"}})
}
