"""Tests of accessible.py."""
import unittest

import accessible


class Repaired(unittest.TestCase):
    def test_code_tables_and_headings_of_the_navigation(self):
        html = ('<div class="highlight"><pre><span>x</span></pre></div><div class="table-wrapper colwidths-auto container"><table></table></div>'
                '<p class="caption" role="heading">Part</p>')
        self.assertEqual(accessible.repaired(html),
                         '<div class="highlight"><pre tabindex="0" role="region" aria-label="Code"><span>x</span></pre></div>'
                         '<div class="table-wrapper colwidths-auto container" tabindex="0" role="region" aria-label="Table"><table></table></div>'
                         '<p class="caption" role="heading" aria-level="2">Part</p>')

    def test_each_line_of_code_is_an_element_that_knows_its_indentation(self):
        html = ('<div class="highlight-cuda notranslate"><div class="highlight"><pre><span></span><span class="k">if</span> (a)\n'
                '<span class="w">    </span>b;\n\n</pre></div></div><div class="highlight-none notranslate"><div class="highlight"><pre>a   b\n</pre></div></div>')
        once = accessible.repaired(html)
        self.assertIn('<span class="code-line"><span></span><span class="k">if</span> (a)\n</span><span class="code-line" style="--indent:4">'
                      '<span class="w">    </span>b;\n</span><span class="code-line">\n</span></pre>', once)
        self.assertIn(">a   b\n</pre>", once)
        self.assertEqual(accessible.repaired(once), once)

    def test_what_has_been_repaired_stays_as_it_is(self):
        html = '<div class="highlight"><pre>x</pre></div><div class="table-wrapper"></div><p class="caption" role="heading">x</p><pre>y</pre>'
        once = accessible.repaired(html)
        self.assertEqual(accessible.repaired(once), once)
        self.assertIn("<pre>y</pre>", once)

    def test_only_texts_of_the_page_change(self):
        context = {"body": '<div class="highlight"><pre>', "title": '<div class="highlight"><pre>', "furo_navigation_tree": None}
        accessible.repair(None, "day15/index", "page.html", context, None)
        self.assertIn("tabindex", context["body"])
        self.assertEqual((context["title"], context["furo_navigation_tree"]), ('<div class="highlight"><pre>', None))


if __name__ == "__main__":
    unittest.main()
