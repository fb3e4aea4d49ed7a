"""Tests of page_links.py: a small site without a fault, then each fault planted alone."""
import pathlib
import tempfile
import unittest

import page_links

PAGE = """<!doctype html><html lang="en"><head><title>A day</title><link rel="stylesheet" href="../style.css">
<link rel="canonical" href="https://example.org/day01/"><script src="../a.js"></script></head>
<body><h1 id="top">Day</h1><p id="two words">x</p><svg><title>picture</title></svg>
<a href="../index.html#start">front</a> <a href="#top">top</a> <a href="#two%20words">words</a> <a href="https://example.org">out</a>
<a href="mailto:a@example.org">mail</a><img src="../p.svg" srcset="../p.svg 1x, ../p.svg 2x" alt=""></body></html>"""
FRONT = '<!doctype html><html lang="en"><head><title>Front</title></head><body><h1 id="start">x</h1></body></html>'


class PageLinks(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        for name, text in {"index.html": FRONT, "day01/index.html": PAGE, "style.css": "a { background: url('p.svg') } /* url(no.png) */",
                           "a.js": "", "p.svg": "<svg/>"}.items():
            (self.root / name).parent.mkdir(exist_ok=True)
            (self.root / name).write_text(text)

    def faults_with(self, before, after, name="day01/index.html"):
        path = self.root / name
        text = path.read_text()
        self.assertIn(before, text)
        path.write_text(text.replace(before, after))
        return [str(fault) for fault in page_links.check(self.root)[0]]

    def expect(self, before, after, message, name="day01/index.html"):
        faults = self.faults_with(before, after, name)
        self.assertEqual(len(faults), 1, faults)
        self.assertIn(message, faults[0])

    def test_a_sound_site_has_no_faults(self):
        self.assertEqual(page_links.check(self.root), ([], 2, 10))

    def test_a_missing_anchor_of_another_page(self):
        self.expect("index.html#start", "index.html#stop", "day01/index.html:4: ../index.html#stop: index.html has no id 'stop'")

    def test_a_missing_anchor_of_the_page_itself(self):
        self.expect('href="#top"', 'href="#bottom"', "has no id 'bottom'")

    def test_a_missing_page(self):
        self.expect("../index.html#start", "../no.html", "there is no such file")

    def test_a_missing_picture_in_a_srcset(self):
        self.expect("../p.svg 2x", "../q.svg 2x", "../q.svg: there is no such file")

    def test_a_folder_without_its_index(self):
        self.expect("../index.html#start", "../", "expected .../index.html")

    def test_a_path_from_the_root(self):
        self.expect("../index.html#start", "/index.html", "begins with /")

    def test_a_path_out_of_the_site(self):
        self.expect("../index.html#start", "../../index.html", "leads out of the site")

    def test_a_script_of_another_host(self):
        self.expect('src="../a.js"', 'src="https://cdn.example.org/a.js"', "loaded from another host")

    def test_a_font_of_another_host_in_a_style_sheet(self):
        self.expect("url('p.svg')", "url(//fonts.example.org/a.woff)", "style.css:1: //fonts.example.org/a.woff is loaded from another host",
                    "style.css")

    def test_a_style_sheet_that_imports_another_hosts(self):
        self.expect("a {", '@import "https://example.org/a.css"; a {', "loaded from another host", "style.css")

    def test_an_id_twice(self):
        self.expect('id="two words"', 'id="two words" ><b id="top"', "the id 'top' is not the first")

    def test_a_page_without_a_title(self):
        self.expect("<title>A day</title>", "", "no title")

    def test_a_page_without_a_language(self):
        self.expect(' lang="en"', "", "no lang")


if __name__ == "__main__":
    unittest.main()
