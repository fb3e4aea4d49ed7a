"""Tests of slides.py, with a day of their own and with the days of the tree."""
import html
import html.parser
import pathlib
import re
import tempfile
import unittest

try:
    import slides
except ModuleNotFoundError as error:
    raise unittest.SkipTest(f"{error.name} is not installed: the site's build installs it into build/site/venv") from error

ROOT = pathlib.Path(__file__).resolve().parent.parent
README = """# Day 97: dots

*PMPP chapter 1.* How do dots meet? They meet in `a.b` of [day 1](../day01/README.md). A third sentence.

![Two dots](figures/dots.svg)

## Meeting

Not this one. Write:

```cpp
int a = 1;              // one
```

```cpp
int b = 2;
```

This block is too long:

```cpp
1
2
3
4
5
6
7
8
9
10
11
```

## Measured

<!-- measurements: h200/day97 -->
| version | time | speed-up | limited by |
| --- | --: | --: | --- |
| near | 2 ms | 1.00x | memory |

*1024 dots, warm cache, NVIDIA H200.* Other sizes: [all](x.md).

## Predict

1. How many?
   <details><summary>Answer</summary>**4**. Two and
   two.</details>
2. Which: a) 1; b) 2? <details><summary>Answer</summary>**b**.</details>

## You can now

- meet;
- part.

## To try

1. Nothing of this is on a slide.
"""


class Slides(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        day = self.root / "day97_dots"
        (day / "figures").mkdir(parents=True)
        (day / "figures/dots.svg").write_text("<svg/>")
        (day / "README.md").write_text(README)
        (day / "CMakeLists.txt").write_text('course_day(TOPIC dots TITLE "Dots"\n  QUESTION "Do <dots> meet?")\n')

    def made(self, before="", after=""):
        path = self.root / "day97_dots/README.md"
        text = path.read_text()
        self.assertIn(before, text)
        path.write_text(text.replace(before, after) if before else text)
        return slides.pages(self.root)

    def bodies(self, *change):
        return re.findall(r'<section class="slide".*?</section>', self.made(*change)["slides/day97"], re.S)

    def test_slides_come_in_the_order_of_the_readme(self):
        titles = [re.search(r"<h[12]>(.*?)</h[12]>", body)[1] for body in self.bodies()]
        self.assertEqual(titles, ["Day 97: dots", "Day 97: dots", "Meeting", "Measured", "Predict, 1", "Predict, 2", "You can now", "Now you"])

    def test_the_first_slide_has_the_question_and_no_chapter(self):
        first = self.bodies()[0]
        self.assertIn("Do &lt;dots&gt; meet?", first)
        self.assertNotIn("PMPP", first)

    def test_links_within_the_tree_become_text(self):
        self.assertIn("<code>a.b</code> of day 1. A third", self.bodies()[0])

    def test_a_picture_is_inside_the_page(self):
        self.assertIn('<img alt="Two dots" src="data:image/svg+xml;base64,PHN2Zy8+"', self.bodies()[1])

    def test_a_missing_picture_is_an_error_that_names_it(self):
        with self.assertRaisesRegex(ValueError, r"day97_dots/README.md: the picture is figures/no.svg"):
            self.made("figures/dots.svg", "figures/no.svg")

    def test_adjacent_code_shares_a_slide_with_the_sentence_before(self):
        body = self.bodies()[2]
        self.assertEqual(body.count("<pre"), 2)
        self.assertIn("<p>Not this one. Write:</p>", body)

    def test_eleven_lines_are_too_many_and_ten_are_not(self):
        self.assertEqual(len(self.bodies()), 8)
        self.assertEqual(len(self.bodies("11\n", "")), 9)

    def test_a_table_has_one_column_of_figures_and_its_conditions(self):
        body = self.bodies()[3]
        self.assertIn("2 ms", body)
        self.assertNotIn("1.00x", body)
        self.assertIn("<em>1024 dots, warm cache, NVIDIA H200.</em>", body)
        self.assertNotIn("Other sizes", body)

    def test_an_answer_is_folded(self):
        self.assertRegex(self.bodies()[4], r"How many\?</p>\n<details><summary>Answer</summary><p><strong>4</strong>. Two and\ntwo.")
        self.assertNotIn("details", self.bodies()[4].split("<details>")[0])

    def test_a_paragraph_brings_the_list_that_it_leads_to(self):
        def body(markdown):
            (slide,) = slides.slides_of_section(slides.sections_of(f"## T\n\n{markdown}")[0], self.root)
            return slide.body
        self.assertIn("<li>one</li>", body("There are two:\n\n- one\n- two\n"))
        self.assertEqual(body("It prints. This is it:\n\n```\n" + "x\n" * 11 + "```\n"), "<p>It prints.</p>\n")
        self.assertEqual(body("It prints. (Mostly.) Always.\n"), "<p>It prints. Always.</p>\n")
        self.assertEqual(slides.slides_of_section(slides.sections_of("## T\n\nNot measured yet.\n")[0], self.root), [])

    def test_the_list_of_decks_names_the_day(self):
        self.assertIn('<a href="day97.html">Day 97: Dots</a>', self.made()["slides/index"])

    def test_a_sentence_does_not_end_in_code_or_parentheses(self):
        self.assertEqual(slides.sentences("It is `a. B`. (See b. Or C.) Then"), ["It is `a. B`.", "(See b. Or C.)", "Then"])


class Tree(unittest.TestCase):
    """Every day of the tree has a deck that closes what it opens, and loses no prediction."""

    class Balance(html.parser.HTMLParser):
        VOID = {"meta", "img", "br", "hr"}

        def __init__(self):
            super().__init__()
            self.open, self.wrong = [], []

        def handle_starttag(self, tag, attributes):
            if tag not in self.VOID:
                self.open.append(tag)

        def handle_endtag(self, tag):
            if not self.open or self.open.pop() != tag:
                self.wrong.append(tag)

    def test_decks(self):
        for path, text in slides.pages(ROOT).items():
            if path == "slides/index":
                continue
            with self.subTest(path):
                balance = self.Balance()
                balance.feed(text)
                self.assertEqual((balance.open, balance.wrong), ([], []))
                folder = next(folder for folder, day, _, _ in slides.days(ROOT) if day == path.removeprefix("slides/"))
                predict = re.search(r"^## Predict$(.*?)^## ", (folder / "README.md").read_text(), re.S | re.M)
                questions = len(re.findall(r"^\d+\. ", predict[1], re.M)) if predict else 0
                self.assertEqual(text.count("<h2>Predict, "), questions)
                self.assertIn("<h2>You can now</h2>", text)
                self.assertNotIn("<!--", text)
                for number, slide in enumerate(re.findall(r"</h[12]>\n(.*?)\n</section>", text, re.S), 1):
                    said = re.sub(r"<[^>]*>", "", slide).strip()
                    if "<img" not in slide:
                        self.assertNotRegex(said, r"^$|^Not measured yet\.$", f"{path}, slide {number}")
                    if not slide.rstrip().endswith("</pre>"):
                        self.assertNotRegex(said, r"[:,]$", f"{path}, slide {number}")
                question = next(question for _, day, _, question in slides.days(ROOT) if day == path.removeprefix("slides/"))
                first = re.search(r'id="slide-1".*?</section>', text, re.S)[0]
                self.assertEqual(" ".join(first.split()).count(html.escape(question)), 1, path)


if __name__ == "__main__":
    unittest.main()
