"""Hooks of mkdocs, which is configured in mkdocs.yml: the documents are written for GitHub, where links out of docs/ are to files of the repository."""

import posixpath
import re

LINK = re.compile(r"(\]\()(\.\./[^)#\s]*)")
MERMAID = re.compile(r"^```mermaid\n.*?^```$", re.DOTALL | re.MULTILINE)


def on_files(files, config):
    """Only pages and pictures are of the site: docs/ has tests and their data too."""
    for file in list(files):
        if file.src_path.endswith(".go") or file.src_path.split("/")[0] in ("testdata", "sidecar-plugin"):
            files.remove(file)
    return files


def on_page_markdown(markdown, page, config, files):
    """Links out of docs/ go to the repository, and so do readers of diagrams by Mermaid, which the theme does not draw."""

    def absolute(match):
        path = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page.file.src_path), match[2]))
        if path.startswith("docs/"):
            return match[0]
        return match[1] + config["repo_url"] + "/blob/main/" + path

    diagram = "[The diagram on GitHub](%s/blob/main/docs/%s)" % (config["repo_url"], page.file.src_path)
    return LINK.sub(absolute, MERMAID.sub(diagram, markdown))
