"""Are the plans of docs/syllabus.md true to the days: their hours, and the order in which days need each other?"""
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
LADDER = "gemm_ladder"


def settings():
    """Folder -> (hours of the core, names of the days that it needs)."""
    found = {}
    for path in ROOT.glob("*/CMakeLists.txt"):
        text = path.read_text(encoding="utf-8")
        hours = re.search(r"course_(?:program_)?day\(.*?\bHOURS ([\d.]+)", text, re.S)
        if hours:
            needs = re.search(r"\bNEEDS ((?:(?:day\d\d|gemm_ladder)\s*)+)", text)
            found[path.parent.name] = (float(hours[1]), needs[1].split() if needs else [])
    return found


def plans():
    """Title -> (rows of (folders, hours), the sum in words below)."""
    text = (ROOT / "docs/syllabus.md").read_text(encoding="utf-8")
    for title, body in re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", text, re.S | re.M):
        rows = [(re.findall(r"\]\(\.\./(\w+)/README\.md\)", row), float(row.split("|")[3]))
                for row in body.splitlines() if row.startswith("| ") and "](../" in row]
        if rows:
            yield title, rows, float(re.search(r"^Together ([\d.]+) hours", body, re.M)[1])


class Syllabus(unittest.TestCase):
    def test_there_are_three_plans(self):
        self.assertEqual([title for title, _, _ in plans()], ["12 weeks", "5 days", "A weekend"])

    def test_hours_are_those_of_the_days(self):
        hours = {folder: each for folder, (each, _) in settings().items()}
        for title, rows, together in plans():
            planned = {}
            for folders, given in rows:
                if folders == [LADDER]:
                    planned[LADDER] = planned.get(LADDER, 0) + given
                else:
                    self.assertEqual(sum(hours[folder] for folder in folders), given, f"{title}: {folders}")
            self.assertEqual(planned.get(LADDER, hours[LADDER]), hours[LADDER], title)
            self.assertEqual(sum(given for _, given in rows), together, title)

    def test_no_day_comes_before_one_that_it_needs(self):
        needs = {folder: each for folder, (_, each) in settings().items()}
        self.assertIn("day05", needs["day15_reduction"])
        for title, rows, _ in plans():
            before = []
            for folders, _ in rows:
                for folder in folders:
                    for need in needs[folder]:
                        self.assertTrue(any(name.startswith(need) for name in before), f"{title}: {folder} needs {need}")
                    before.append(folder)

    def test_what_is_handed_in_are_the_days_of_the_week(self):
        text = (ROOT / "docs/syllabus.md").read_text(encoding="utf-8")
        for row in re.findall(r"^\| \d+ \|.*$", text, re.M):
            folders = re.findall(r"\]\(\.\./(\w+)/README\.md\)", row)
            expected = ",".join(LADDER if folder == LADDER else folder[:5] for folder in folders)
            self.assertEqual(re.search(r"`([^`]*)` \|$", row)[1], expected)


if __name__ == "__main__":
    unittest.main()
