#!/usr/bin/env python3
"""Tests of release_notes.py: scripts/test_release_notes.py."""
import contextlib
import io
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import release_notes as release  # noqa: E402

COURSE = """# Changelog

## Third edition (in progress)

Not yet.

## Second edition (2027-01-15)

**Days.** Two lines
of one paragraph, with [a day](day01/README.md#why) and [a site](https://x.org/a).

- One item
  of two lines.
- Another. See [here](#first-edition).

```
one
two
```

## 1.10.0

Ten.

## 1.1.0

One.

## Empty
"""
ENGINE = "# Changelog of cuda_on_cpu\n\n## 1.0.0\n\nSee [settings](docs/settings.md) and [the course](../README.md).\n"


class Notes(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        (self.root / "cuda_on_cpu").mkdir()
        (self.root / release.COURSE).write_text(COURSE)
        (self.root / release.ENGINE).write_text(ENGINE)

    def test_a_release_has_its_section_a_line_per_paragraph(self):
        title, text = release.notes(self.root, "second-edition")
        self.assertEqual(title, "Second edition (2027-01-15)")
        self.assertEqual(text, "**Days.** Two lines of one paragraph, with [a day](day01/README.md#why) and [a site](https://x.org/a).\n\n"
                               "- One item of two lines.\n- Another. See [here](#first-edition).\n\n```\none\ntwo\n```")

    def test_versions_are_found_as_tags_name_them(self):
        for tag, text in (("v1.1.0", "One."), ("1.1.0", "One."), ("V1.10.0", "Ten."), ("Second Edition", "**Days.**")):
            self.assertTrue(release.notes(self.root, tag)[1].startswith(text), tag)

    def test_links_lead_to_the_files_of_the_tag(self):
        _, text = release.notes(self.root, "second-edition", "https://example.org/a/b/")
        self.assertIn("[a day](https://example.org/a/b/blob/second-edition/day01/README.md#why) and [a site](https://x.org/a)", text)
        self.assertIn("[here](#first-edition)", text)
        _, text = release.notes(self.root, "cuda_on_cpu-1.0.0", "https://example.org/a/b")
        self.assertIn("(https://example.org/a/b/blob/cuda_on_cpu-1.0.0/cuda_on_cpu/docs/settings.md)", text)
        self.assertIn("(https://example.org/a/b/blob/cuda_on_cpu-1.0.0/README.md)", text)

    def test_what_the_changelog_lacks_is_an_error(self):
        for tag, message in (("v9.0.0", "CHANGELOG.md: there is no section for v9.0.0; expected one of third-edition, second-edition, 1.10.0, 1.1.0, empty"),
                             ("third-edition", "CHANGELOG.md: 'Third edition (in progress)' is in progress; expected a section without that, or with a date"),
                             ("empty", "CHANGELOG.md: 'Empty' is empty; expected what is new"),
                             ("v1.1", "CHANGELOG.md: there is no section for v1.1;"),
                             ("cuda_on_cpu-1.1.0", "cuda_on_cpu/CHANGELOG.md: there is no section for 1.1.0; expected one of 1.0.0"),
                             ("1.0.0", "CHANGELOG.md: there is no section for 1.0.0;")):
            with self.subTest(tag), self.assertRaisesRegex(release.MissingVersion, "^" + re.escape(message)):
                release.notes(self.root, tag)


class Workflow(unittest.TestCase):
    def test_only_a_release_of_the_course_becomes_the_latest(self):
        workflow = (release.ROOT / ".github/workflows/release.yml").read_text()
        step = re.search(r"- run: \|\n((?: {10}.*\n)+)", workflow)[1]
        with tempfile.TemporaryDirectory() as folder:
            gh = pathlib.Path(folder) / "gh"
            gh.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
            gh.chmod(0o755)
            for tag, expected in (("first-edition", []), ("cuda_on_cpu-1.0.0", ["--latest=false"])):
                done = subprocess.run(["bash", "-e", "-c", step], cwd=release.ROOT, env={**os.environ, "TAG": tag, "PATH": f"{folder}:{os.environ['PATH']}"},
                                      capture_output=True, text=True)
                self.assertEqual(done.stdout.splitlines()[:-4], ["release", "create", tag, *expected, "--verify-tag"], done.stderr)


class Command(unittest.TestCase):
    def run_command(self, *arguments):
        out, said = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(said):
            try:
                code = release.main(arguments)
            except SystemExit as stop:
                code = stop.code
        return code, out.getvalue(), said.getvalue()

    def test_the_first_edition_of_the_tree(self):
        code, out, _ = self.run_command("first-edition")
        self.assertEqual(code, 0)
        self.assertIn("Days 01 to 45", out)
        self.assertEqual(self.run_command("first-edition", "--title")[1], "CUDA, day by day: First edition\n")

    def test_every_section_of_the_tree_has_a_name_of_its_own(self):
        for file in (release.COURSE, release.ENGINE):
            names = [release.name_of(match["title"]) for match in release.SECTION.finditer((release.ROOT / file).read_text())]
            self.assertEqual(len(names), len(set(names)), file)
            self.assertTrue(all(names), file)

    def test_errors_have_their_codes(self):
        code, out, said = self.run_command("v99.0.0")
        self.assertEqual((code, out), (1, ""))
        self.assertIn("there is no section for v99.0.0", said)
        code, _, said = self.run_command("first-edition", "--repository", "here")
        self.assertEqual(code, 2)
        self.assertIn("--repository is 'here'; expected an address", said)


if __name__ == "__main__":
    unittest.main()
