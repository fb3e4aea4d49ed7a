"""Tests of parts.py: python3 -m unittest discover site, in the site's virtual environment."""
import pathlib
import re
import sys
import tempfile
import unittest

SITE = pathlib.Path(__file__).resolve().parent
ROOT = SITE.parent
sys.path.insert(0, str(SITE))
import front  # noqa: E402
import parts  # noqa: E402
import stage  # noqa: E402

AIMS = """# The parts

## 1. A first kernel

You begin.

After it you can

- add [vectors](../day01_vectors/README.md).

## 2. Patterns

You go on.
"""


def day(number, part, needs=(), hours="2"):
    return stage.Day(f"day{number}_topic", f"{number} Topic {number}", f"Why {number}?", tuple((each, f"day{each}_topic") for each in needs), hours, part)


DAYS = [day("00", "1. A first kernel"), day("01", "1. A first kernel", ["00"], "1.5 + 1"), day("10", "2. Patterns", ["01", "00"], "3 + 2.5")]


class Parts(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.put("docs/parts.md", AIMS)
        for each in DAYS:
            self.put(f"{each.folder}/README.md", f"# Day\n\n![Text](figures/{each.name}.svg)\n\n![Another](b.svg)\n" if each.name != "day00" else "# Day\n")

    def put(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def test_a_page_has_the_aim_the_days_and_their_hours(self):
        pages = parts.pages(self.root, DAYS)
        self.assertEqual(list(pages), ["part1/index", "part2/index"])
        self.assertEqual(pages["part1/index"], """# Part 1: A first kernel

You begin.

After it you can

- add [vectors](../day01_vectors/README.md).

## The days

2 days, 3.5 hours, and 1 more for what is beyond the core. Hours include the exercises.

### [00 Topic 00](../day00_topic/README.md)

Why 00?

Leads to [01](../day01_topic/README.md), [10](../day10_topic/README.md) · 2 hours

### [01 Topic 01](../day01_topic/README.md)

Why 01?

Needs [00](../day00_topic/README.md) · Leads to [10](../day10_topic/README.md) · 1.5 + 1 hours

![Text](../day01_topic/figures/day01.svg)
""")
        self.assertNotIn("You go on", pages["part1/index"])
        self.assertIn("1 day, 3 hours, and 2.5 more", pages["part2/index"])

    def test_other_parts_than_those_of_the_front_page_are_an_error(self):
        for before, after in (("## 2. Patterns", "## 2. Rows"), ("## 2. Patterns", "### 2. Patterns"), ("## 1.", "## 3.")):
            self.put("docs/parts.md", AIMS.replace(before, after))
            with self.assertRaisesRegex(ValueError, r"^docs/parts.md: its parts are .*; expected those of README.md: 1. A first kernel, 2. Patterns$"):
                parts.pages(self.root, DAYS)

    def test_hours_that_are_no_numbers_are_an_error(self):
        self.assertEqual(parts.hours([day("01", "A", hours=hours) for hours in ("2", "1.5 + 1", "", "0.5 + ")]), (4.0, 1.0))
        for wrong in ("2-3", "two", "1 + 2 + 3", "1 + x"):
            with self.assertRaises(ValueError) as error:
                parts.hours([day("01", "A"), day("02", "A", hours=wrong)])
            self.assertEqual(str(error.exception), f"README.md, 02 Topic 02: the hours are '{wrong}'; expected 2 or 2 + 1.5")

    def test_the_list_of_parts_leads_to_their_pages(self):
        body = parts.with_links(AIMS, ["1. A first kernel", "2. Patterns"])
        self.assertIn("## 2. Patterns\n\n[The days of this part](../part2/index.md)\n\nYou go on.", body)
        self.assertEqual(body.count("The days of this part"), 2)

    def test_the_front_page_leads_to_the_part(self):
        self.assertIn('<span>2</span> <a href="part2/index.html">Patterns</a></h3>', front.card("2. Patterns", DAYS[2:]))


class OfTheTree(unittest.TestCase):
    def setUp(self):
        self.days = stage.read_days(ROOT)
        self.pages = parts.pages(ROOT, self.days)

    def test_every_day_is_on_one_page_in_the_order_of_the_front_page(self):
        found = [folder for page in self.pages.values() for folder in re.findall(r"^### \[[^\]]*\]\(\.\./(\w+)/README\.md\)$", page, re.M)]
        self.assertEqual(found, [each.folder for each in self.days])

    def test_every_part_has_things_one_can_do_after_it(self):
        for name, page in self.pages.items():
            begin = page.index("After it you can\n")
            self.assertGreaterEqual(len(re.findall(r"^- ", page[begin:page.index("## The days")], re.M)), 2, name)

    def test_leads_to_is_needs_from_the_other_side(self):
        text = "\n".join(self.pages.values())
        lines = {folder: line for folder, line in re.findall(r"^### \[[^\]]*\]\(\.\./(\w+)/README\.md\)\n\n.*\n\n(.*)$", text, re.M)}
        pairs = {(folder, after) for folder, line in lines.items() if "Leads to" in line
                 for after in re.findall(r"\(\.\./(\w+)/", line.split("Leads to")[1])}
        self.assertEqual(pairs, {(need, each.folder) for each in self.days for _, need in each.needs if need in lines})

    def test_figures_are_there(self):
        figures = [name for page in self.pages.values() for name in re.findall(r"^!\[[^\]]*\]\(\.\./([^)]*)\)$", page, re.M)]
        self.assertGreater(len(figures), 30)
        for name in figures:
            self.assertTrue((ROOT / name).is_file(), name)

    def test_the_hours_are_those_of_the_days(self):
        self.assertEqual(sum(parts.hours(self.days)), sum(float(hour) for each in self.days for hour in each.hours.replace("+", " ").split()))


if __name__ == "__main__":
    unittest.main()
