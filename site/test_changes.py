"""Tests of changes.py: python3 -m unittest discover site."""
import pathlib
import re
import sys
import unittest

SITE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(SITE))
import changes  # noqa: E402

TEXT = """# Changelog

**Not a subject.** Of no version.

## Second edition (in progress)

**Days.** New ones, **bold** ones.

**CUDA on the CPU** is a product.

## First edition

**Days.** The first.
"""


class Page(unittest.TestCase):
    def test_versions_and_subjects_have_anchors(self):
        page = changes.page(TEXT)
        self.assertIn('<span id="version-second-edition"></span>\n\n## Second edition (in progress)\n', page)
        self.assertIn('\n<span id="second-edition-days"></span>**Days.** New ones, **bold** ones.\n', page)
        self.assertIn('<span id="second-edition-cuda-on-the-cpu"></span>**CUDA on the CPU** is', page)
        self.assertIn('<span id="first-edition-days"></span>', page)

    def test_the_index_leads_to_all_of_them_and_to_nothing_else(self):
        page = changes.page(TEXT)
        begin, end = page.index("<ul"), page.index("</ul>")
        self.assertTrue(page.startswith("# Changelog\n\n<ul class=\"versions\">"))
        self.assertEqual(re.findall(r'href="#([^"]*)"', page[begin:end]), re.findall(r'id="([^"]*)"', page))
        self.assertIn('<li><a href="#version-second-edition">Second edition (in progress)</a>: <a href="#second-edition-days">Days</a> · ', page)
        self.assertNotIn("Not a subject</a>", page)

    def test_an_anchor_stays_when_the_version_is_released(self):
        ids = re.findall(r'id="([^"]*)"', changes.page(TEXT))
        self.assertEqual(re.findall(r'id="([^"]*)"', changes.page(TEXT.replace("(in progress)", "(2027-01-15)"))), ids)

    def test_the_text_stays(self):
        page = changes.page(TEXT)
        self.assertEqual(re.sub(r"<span id=[^>]*></span>(?:\n\n)?|<ul.*?</ul>\n\n", "", page, flags=re.S), TEXT)

    def test_anchors_of_the_tree_are_unique(self):
        for file in changes.FILES:
            page = changes.page((SITE.parent / file).read_text(encoding="utf-8"))
            ids = re.findall(r'id="([^"]*)"', page)
            self.assertEqual(len(ids), len(set(ids)), file)
            self.assertIn('class="versions"', page)


if __name__ == "__main__":
    unittest.main()
