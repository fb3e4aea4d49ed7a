"""Tests of build.py, stage.py, source.py and glossary.py: python3 -m unittest discover site, in the site's virtual environment."""
import functools
import http.server
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import unittest
import urllib.error
import urllib.request
from unittest import mock

SITE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(SITE))
import build  # noqa: E402
import front  # noqa: E402
import glossary  # noqa: E402
import pages  # noqa: E402
import source  # noqa: E402
import stage  # noqa: E402

README = """# CUDA

### 1. A first kernel

| day | question | needs | hours | exercises | best beside a library |
| --- | --- | --- | --: | --: | --- |
| [01 Vectors](day01_vectors/README.md) | Which thread? | [00](day00_first/README.md) | 1.5 | 4 |  |
"""


class Tree(unittest.TestCase):
    """A small checkout."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name).resolve()
        stage.check_links.known_to_git.cache_clear()
        self.put("README.md", README)
        self.put("day01_vectors/README.md", "# Day 1: vectors\n")
        self.put("day01_vectors/add.cuh", "int x = 1 < 2;\nint y;\n")
        subprocess.run(["git", "init", "-q", str(self.root)], check=True)

    def put(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def stage(self):
        stage.check_links.known_to_git.cache_clear()
        return stage.Stage(self.root, self.root / "out")


class Addresses(Tree):
    def test_pages_have_readable_addresses(self):
        expected = {"README.md": "index", "day15_reduction/README.md": "day15/index", "day15_reduction/exercises.md": "day15/exercises/index",
                    "day15_reduction/beyond/README.md": "day15/beyond/index", "docs/measured/day15_reduction.md": "day15/measured/index",
                    "docs/glossary.md": "glossary/index", "cuda_on_cpu/docs/settings.md": "cuda_on_cpu/settings/index",
                    "CONTRIBUTING.md": "contributing/index", "gemm_ladder/README.md": "gemm_ladder/index"}
        self.assertEqual({name: stage.page_of(name) for name in expected}, expected)

    def test_days_come_from_the_front_page_with_their_part(self):
        day, = stage.read_days(self.root)
        self.assertEqual((day.name, day.label, day.part, day.question), ("day01", "01 Vectors", "1. A first kernel", "Which thread?"))
        self.assertEqual((day.needs, day.hours), ((("00", "day00_first"),), "1.5"))

    def test_links_lead_to_pages_and_to_pages_of_sources(self):
        run = self.stage()
        text = run.relink("[a](add.cuh#L2) [b](../README.md#cuda) [c](https://x.org/README.md) `[d](none.md)`", "day01_vectors/README.md")
        self.assertEqual(text, "[a](course:source/day01_vectors/add.cuh.html#L2) [b](../index.md#cuda) [c](https://x.org/README.md) `[d](none.md)`")
        self.assertEqual((run.errors, run.sources), ([], {"day01_vectors/add.cuh"}))

    def test_a_link_named_by_its_address_gets_the_title(self):
        self.put("docs/measured/day01_vectors.md", "<!-- Made. -->\n# Measured: Vectors\n")
        self.assertEqual(self.stage().page("[docs/measured/day01_vectors.md](../docs/measured/day01_vectors.md) [docs/none.md](#a)\n", "day01_vectors/README.md"),
                         "[Measured: Vectors](measured/index.md) [docs/none.md](#a)\n")

    def test_links_that_a_code_host_names_by_their_file_get_names(self):
        self.put("day01_vectors/beyond/README.md", "# More of it\n")
        stage.check_links.known_to_git.cache_clear()
        run = stage.Stage(self.root, self.root / "out")
        self.assertEqual(run.named("Text\n\n[beyond/README.md](beyond/README.md) and [beyond/README.md](beyond/README.md#a)", "day01_vectors/README.md"),
                         "Text\n\n[The part beyond](beyond/README.md) and [the part beyond](beyond/README.md#a)")
        self.assertEqual(run.named("[day01_vectors/beyond/README.md](beyond/README.md) [README](README.md) [day01_vectors](../day01_vectors/README.md) [README.md](https://x.org)",
                                   "day01_vectors/README.md"),
                         "[More of it](beyond/README.md) [lesson](README.md) [Day 1: vectors](../day01_vectors/README.md) [README.md](https://x.org)")

    def test_only_the_README_of_a_day_is_a_lesson(self):
        self.put("day01_vectors/beyond/README.md", "# Day 1, beyond: more\n")
        self.put("gemm_ladder/README.md", "# The ladder\n")
        self.put("tool/README.md", "# The `tool`\n")
        self.put("tool/docs/use.md", "# Use\n")
        run = self.stage()
        for path, text, expected in (
                ("day01_vectors/exercises.md", "the [README](README.md#a).", "the [lesson](README.md#a)."),
                ("day01_vectors/beyond/README.md", "the\n[README](../README.md)", "the\n[lesson](../README.md)"),
                ("gemm_ladder/exercises.md", "[README](README.md)", "[lesson](README.md)"),
                ("tool/docs/use.md", "see the [README](../README.md) and with it\nthe [README](../README.md#b).", "see [The tool](../README.md) and with it\n[The tool](../README.md#b)."),
                ("day01_vectors/exercises.md", "the [README](beyond/README.md)", "[Day 1, beyond: more](beyond/README.md)"),
                ("tool/docs/use.md", "the [README](none/README.md)", "the [README](none/README.md)")):
            self.assertEqual(run.named(text, path), expected, path)

    def test_a_link_to_a_folder_lists_it(self):
        run = self.stage()
        self.assertEqual(run.relink("[a](../day01_vectors)", "day01_vectors/README.md"), "[a](index.md)")

    def test_a_link_that_leads_nowhere_is_an_error_with_file_and_link(self):
        run = self.stage()
        run.relink("[a](gone.cuh)", "day01_vectors/README.md")
        self.assertEqual(run.errors, ["day01_vectors/README.md: the link gone.cuh: there is no day01_vectors/gone.cuh"])


class Texts(Tree):
    def test_tables_without_links_are_html(self):
        table = "| a `<b>` | *%* |\n| --- | --: |\n| **x** | 1 < 2 |\n"
        self.assertEqual(stage.plain_tables("Text\n\n" + table.replace("<b>", "b").replace("<", "&")), "Text\n\n" + """<div class="table-wrapper docutils container">
<table class="docutils align-default">
<thead>
<tr><th>a <code>b</code></th>
<th class="text-right"><em>%</em></th></tr>
</thead>
<tbody>
<tr><td><strong>x</strong></td>
<td class="text-right">1 &amp; 2</td></tr>
</tbody>
</table>
</div>
""")
        for other in (table, "| [a](b) |\n| --- |\n| c |\n", "| a \\| b |\n| --- |\n| c |\n", "| a |\n"):
            self.assertEqual(stage.plain_tables(other), other)

    def test_a_long_name_in_a_table_can_break(self):
        self.assertEqual(stage.inline_html("`a_b` c_d _e_"), "<code>a_<wbr>b</code> c_<wbr>d _e_")

    def test_hints_are_folded_up_to_the_next_heading(self):
        self.assertEqual(stage.folded_hints("### Hint 1\nThis.\n\nThat.\n\n## next\nText\n"),
                         "<details><summary>Hint 1</summary>\n\nThis.\n\nThat.\n\n</details>\n\n## next\nText\n")

    def test_an_exercise_has_its_file_and_its_minutes(self):
        text = "# E\n\nText.\n\n## naive\n- kernels: `k`\n- file: `a.cuh`\n- tests: `*/naive`,\n  `*/b`\n- minutes: 10\n\nWrite.\n- kept: no\n"
        sheet = stage.exercise_sheet(text, "day01")
        self.assertTrue(sheet.startswith("# E\n\n`./course next day01` copies the file to `my/`, `./course check` judges it"), sheet)
        self.assertIn("## naive\n\n`a.cuh`, 10 minutes\n\nWrite.\n- kept: no\n", sheet)
        self.assertNotIn("kernels:", sheet)

    def test_every_exercise_of_the_tree_has_minutes(self):
        for path in SITE.parent.glob("*/exercises.md"):
            sheet = stage.exercise_sheet(path.read_text(), path.parent.name[:5])
            self.assertNotRegex(sheet, r"(?m)^- (kernels|file|tests|version|traffic|streams|needs|children|cause|starts_from|minutes): ", path)

    def test_a_day_names_what_it_needs(self):
        self.put("day01_vectors/exercises.md", "# E\n")
        self.assertEqual(stage.facts(self.root, stage.read_days(self.root)[0]), "[Part 1: A first kernel](../part1/index.md) · Needs [00](../day00_first/README.md) · 1.5 hours · [Exercises](exercises.md)\n")
        self.assertIn("needs 00 · 1.5 h<", front.card("1. A", stage.read_days(self.root)))

    def test_comments_go_except_in_code(self):
        self.assertEqual(stage.without_comments("a <!-- b\nc --> d `<!-- e -->`"), "a  d `<!-- e -->`")

    def test_languages_of_code(self):
        self.assertEqual(stage.with_languages("```cpp\nint x;\n```\n\n```\n./course test\n```\n\n```\n$ ls\n```\n\n```\nplain\n```\n"),
                         "```cuda\nint x;\n```\n\n```sh\n./course test\n```\n\n```console\n$ ls\n```\n\n```\nplain\n```\n")

    def test_a_picture_has_a_copy_for_each_theme(self):
        self.put("day01_vectors/a.svg", '<svg viewBox="0 0 40 30.4"><style>@media (prefers-color-scheme: dark) {}</style></svg>')
        run = self.stage()
        text = run.pictures("![A *b*](a.svg)", "day01_vectors/README.md")
        self.assertIn('<span class="figure" tabindex="0" role="group" aria-label="Figure"><img class="only-light" src="../figures/day01_vectors/a.light.svg"'
                      ' alt="A b" loading="lazy" width="40" height="30"><img class="only-dark"', text)
        self.assertIn("@media not all {}", (self.root / "out/extra/figures/day01_vectors/a.light.svg").read_text())
        self.assertIn("@media all {}", (self.root / "out/extra/figures/day01_vectors/a.dark.svg").read_text())

    def test_a_picture_is_never_so_narrow_that_it_is_illegible(self):
        for letters, least in (('font-size="12"', 600), ("font-size: 12.0px", 600), ("font: bold 9px sans-serif", 800), ('font-size="6"', 800), ('font-size="36"', 200)):
            self.assertIn(f'style="min-width: {least}px"', stage.size_of(f'<svg viewBox="0 0 800 300"><text {letters}/><text font-size="40"/></svg>'), letters)
        self.assertNotIn("style", stage.size_of('<svg viewBox="0 0 800 300"></svg>'))

    def test_a_picture_without_dark_colours_is_paper(self):
        self.put("day01_vectors/b.svg", '<svg viewBox="0 0 40 30"></svg>')
        self.assertIn('<img class="paper" src="../files/day01_vectors/b.svg"', self.stage().pictures("![B](b.svg)", "day01_vectors/README.md"))

    def test_pictures_of_the_tree_keep_their_dark_colours(self):
        """A query that is not separated from @media, as in "@mediaall", is dropped with all its colours."""
        root = SITE.parent
        pictures = [root / name for name in stage.check_links.known_to_git(root) if name.endswith(".svg") and (root / name).is_file()]
        dark = [path for path in pictures if "prefers-color-scheme" in path.read_text()]
        self.assertGreater(len(dark), 50)
        for path in dark:
            for query in ("all", "not all"):
                changed = stage.of_theme(path.read_text(), query)
                self.assertRegex(changed, rf"@media {query}\s*\{{", path)
                self.assertNotRegex(changed, r"@media(all|not)|prefers-color-scheme:\s*dark", path)

    def test_a_section_comes_below_the_title(self):
        self.assertEqual(stage.below_title("\n# A\n\nText\n\n# B\n", "charts"), "\n# A\n\ncharts\n\nText\n\n# B\n")

    def test_lines_of_sources_can_be_linked_to(self):
        page = source.page(self.root, "day01_vectors/add.cuh", ("day01", "Day 1: vectors"))
        self.assertIn('id="L2"', page)
        self.assertNotIn('id="L3"', page)
        self.assertIn("&lt;", page)
        self.assertIn('<a href="../../day01/index.html">Day 1: vectors</a>', page)
        self.assertIn('<form action="../../search.html"', page)
        self.assertNotIn('rel="', page.split("</main>")[1])

    def test_a_source_page_leads_to_the_files_beside_it(self):
        files = ["day01_vectors/add.cuh", "day01_vectors/beyond/more.cuh", "day01_vectors/z.cpp"]
        self.assertEqual(source.neighbours(files[1], files), '\n<nav aria-label="Files beside this one"><a href="../add.cuh.html" rel="prev">Previous: add.cuh</a>'
                         ' <a href="../z.cpp.html" rel="next">Next: z.cpp</a></nav>')
        self.assertNotIn("Previous", source.neighbours(files[0], files))
        self.assertNotIn("Next", source.neighbours(files[2], files))
        self.assertEqual(source.neighbours(files[0], files[:1]), "")

    def test_a_source_page_is_made_anew_if_anything_that_it_shows_has_changed(self):
        run, name, day = self.stage(), "day01_vectors/add.cuh", ("day01", "Day 1: vectors")
        path = run.target / f"extra/source/{name}.html"

        def made(day=day, files=(name,)):
            with mock.patch("source.highlight", return_value="<pre></pre>") as highlight:
                run.source_page(name, day, list(files))
            self.assertEqual(path.read_text(), source.around(name, day, list(files))[0] + "<pre></pre>" + source.around(name, day, list(files))[1])
            return highlight.called

        self.assertTrue(made())
        self.assertFalse(made())
        self.assertTrue(made(day=("day01", "Day 1: sums")))
        self.assertTrue(made(day=("day02", "Day 1: sums")))
        self.assertTrue(made(day=None))
        self.assertTrue(made(day=None, files=(name, "day01_vectors/z.cuh")))
        for changed in ("source", "accessible"):
            module = self.root / f"{changed}.py"
            module.touch()
            with mock.patch.object(sys.modules[changed], "__file__", str(module)):
                os.utime(module, (4e9, 4e9))
                self.assertTrue(made(), changed)
                os.utime(module, (1e9, 1e9))
                self.assertFalse(made(), changed)

    def test_a_day_leads_on_to_the_next(self):
        self.put("README.md", README + README.splitlines()[-1].replace("01", "03").replace("Vectors", "Warps") + "\n")
        self.put("day01_vectors/exercises.md", "# E\n")
        day, following = stage.read_days(self.root)
        self.assertEqual(stage.way_on(self.root, day, [day, following]),
                         "\n\n**Go on:** [Exercises](../day01_vectors/exercises.md) · next day: [03 Warps](../day03_vectors/README.md)\n")
        self.assertEqual(stage.way_on(self.root, day, [day, following], "exercises.md"), "\n\n**Go on:** next day: [03 Warps](../day03_vectors/README.md)\n")
        self.assertEqual(stage.way_on(self.root, following, [day, following]), "")

    def test_a_search_shows_words_and_no_marks(self):
        text = ("# A *b*\n\n`c[i] * 2` **d** <em>e</em> [f](g.md) k<<<h, i>>>()\n\n| j | k |\n| --- | --: |\n| 1 | 2 &lt; 3 |\n\n"
                "```cuda\nx = y * z;\n```\n\n```{toctree}\n:hidden:\n\nl/index\n```\n")
        self.assertEqual(stage.plain_text(text), "A b c[i] * 2 d e f k<<<h, i>>>() j k 1 2 < 3 x = y * z;")


class Whole(Tree):
    def test_a_small_tree_is_staged(self):
        self.put("README.md", "# C\n\nText.\n\n```sh\n./course\n```\n\n```cpp\nint x;\n```\n" + README.removeprefix("# CUDA\n"))
        self.put("docs/parts.md", "# Parts\n\n## 1. A first kernel\n\nOne.\n")
        self.put("docs/glossary.md", "# Glossary\n\n" + Glossary.TABLE)
        self.put("docs/book.md", "# Book\n")
        self.put("docs/command.md", "# Command\n\n## How to read a day\n")
        self.put("cuda_on_cpu/README.md", "# CPU\n")
        self.put("day00_first/README.md", "# Day 0\n")
        self.put("day01_vectors/README.md", "# Day 1: vectors\n\n[The kernel](add.cuh), [all files](beyond)\n")
        self.put("day01_vectors/beyond/more.cuh", "int z;\n")
        self.put("day03_warps/README.md", "# Day 3\n")
        self.put("tools/course/renumbered.cpp", "")
        stage.check_links.known_to_git.cache_clear()
        with mock.patch("stage.module", return_value=None):
            self.assertEqual(stage.stage(self.root, self.root / "out"), [])
        site = json.loads((self.root / "out/site.json").read_text())
        self.assertEqual(site["navigation"][0], ["1. A first kernel", [["part1/index", "About this part", []], ["day01/index", "01 Vectors", []]]])
        for name in ("day01_vectors/add.cuh.html", "day01_vectors/beyond/index.html"):
            self.assertIn('/day01/index.html">Day 1: vectors</a>', (self.root / "out/extra/source" / name).read_text(), name)


class Front(Tree):
    def test_the_repository_is_a_link_where_it_is_known(self):
        self.put("README.md", "# C\n\nText.\n\n```cpp\n```\n\n```sh\n./course\n```\n")
        self.assertIn("Clone the repository, then run in its root:", front.page(self.root, []))
        self.assertIn("Clone [the repository](https://x.org/c), then", front.page(self.root, [], "", "https://x.org/c"))


class Server(unittest.TestCase):
    def test_an_address_that_leads_to_nothing_shows_404_html(self):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "404.html").write_text("<h1>No such page</h1>")
            handler = functools.partial(build.Handler, directory=folder)
            with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server, mock.patch.object(build.Handler, "log_message"):
                threading.Thread(target=server.serve_forever, daemon=True).start()
                with self.assertRaises(urllib.error.HTTPError) as raised:
                    urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/none/", timeout=20)
                with raised.exception as answer:
                    self.assertEqual((answer.code, answer.read()), (404, b"<h1>No such page</h1>"))
                server.shutdown()


class NotFound(unittest.TestCase):
    def test_links_of_404_html_start_at_the_base_except_those_within_the_page(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "404.html"
            path.write_text('<html><head><title>x</title></head><body><a href="#main">m</a></body></html>')
            pages.finish(mock.Mock(outdir=folder, config=mock.Mock(course_base="/course/")), None)
            text = path.read_text()
        self.assertTrue(text.startswith('<html><head><base href="/course/"><script>'), text)  # before anything is loaded
        self.assertIn(f"<script>{pages.SAME_PAGE}</script></body>", text)


class Configuration(unittest.TestCase):
    def test_a_change_of_a_module_writes_all_pages_anew(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            digests = []
            for file, text in (("accessible.py", "one"), ("accessible.py", "two"), ("pages.py", "two"), ("test_pages.py", "two")):
                (folder / file).write_text(text)
                digests.append(pages.made_by(folder))
        self.assertEqual(len(set(digests[:3])), 3)
        self.assertEqual(digests[2], digests[3])  # a test makes no page

    def test_sphinx_knows_the_modules_that_make_the_pages(self):
        values, read_text = {}, pathlib.Path.read_text
        site = '{"navigation": [], "repository": null, "static": []}'
        with mock.patch.object(pathlib.Path, "read_text", lambda path, **options: site if path.name == "site.json" else read_text(path, **options)):
            spec = importlib.util.spec_from_file_location("course_conf", SITE / "conf.py")
            conf = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(conf)
        conf.setup(mock.Mock(add_config_value=lambda name, value, rebuild: values.update({name: (value, rebuild)})))
        self.assertEqual(values["course_made_by"], (pages.made_by(SITE), "html"))


class Redirects(Tree):
    def test_old_numbers_lead_to_the_day_if_no_other_day_has_them(self):
        self.put("tools/course/renumbered.cpp", '{{"day02_vectors", "day01_vectors"}, {"day01_vectors", "day01_vectors"}}')
        days = stage.read_days(self.root)
        self.assertEqual(stage.redirects(self.root, days), {"day01_vectors": "day01", "day02_vectors": "day01", "day02": "day01"})


class Glossary(unittest.TestCase):
    TABLE = ("| term | meaning | day | PMPP |\n| --- | --- | --- | --- |\n| warp, lane | 32 threads: `a | b` | [01](../day01_vectors/README.md) | warp |\n"
             "| SM | a unit | [03](../day03_warps/README.md) | |\n")

    def test_rows(self):
        rows = glossary.read(self.TABLE)
        self.assertEqual([(row["term"], row["day"], row["folder"], row["pmpp"]) for row in rows],
                         [("warp, lane", "01", "day01_vectors", "warp"), ("SM", "03", "day03_warps", "")])

    def test_uses_are_whole_words_outside_of_code(self):
        rows = glossary.read(self.TABLE)
        used = glossary.uses(rows, {"a": "Both lanes\n", "b": "`warp` warped small", "c": "an SM"})
        self.assertEqual(used, {"warp, lane": ["a"], "SM": ["c"]})


class Arguments(unittest.TestCase):
    def test_other_files_are_not_removed(self):
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder)
            build.check_folder(out)
            build.check_folder(out / "new")
            (out / "mine.html").touch()
            with self.assertRaisesRegex(build.SetupError, "which holds files that are not of a site"):
                build.check_folder(out)
            with self.assertRaisesRegex(build.SetupError, "a file; expected a directory"):
                build.check_folder(out / "mine.html")
            (out / ".buildinfo").touch()
            build.check_folder(out)

    def test_a_port_in_use_is_named(self):
        with mock.patch.object(build.http.server, "ThreadingHTTPServer", side_effect=OSError(98, "Address already in use")):
            with self.assertRaisesRegex(build.SetupError, "^--serve is 8000: Address already in use; expected a free port$"):
                build.serve(pathlib.Path("html"), 8000)

    def test_defaults(self):
        options = build.parse([])
        self.assertEqual((options.out, options.base, options.repository, options.serve), (build.BUILD / "html", "/", None, None))
        self.assertEqual(build.parse(["--repository", "https://example.org/a/b"]).repository, "https://example.org/a/b")
        self.assertEqual(build.parse(["--serve"]).serve, 8000)

    def test_wrong_arguments_are_named(self):
        for arguments, message in ((["--serve", "70000"], "is '70000'; expected a port, 1 to 65535"), (["--base", "x"], "is 'x'; expected a path"),
                                   (["--repository", "x"], "is 'x'; expected an address")):
            with self.subTest(arguments), mock.patch("sys.stderr") as said, self.assertRaises(SystemExit) as stop:
                build.parse(arguments)
            self.assertEqual(stop.exception.code, 2)
            self.assertIn(message, "".join(call.args[0] for call in said.write.call_args_list))

    def test_an_environment_of_the_same_requirements_is_reused(self):
        with tempfile.TemporaryDirectory() as name, mock.patch("build.run_quietly") as run, mock.patch("sys.stderr"):
            folder, requirements = pathlib.Path(name) / "venv", pathlib.Path(name) / "requirements.txt"
            requirements.write_text("Sphinx==1\n")

            def make(command, failure):
                (folder / "bin").mkdir(parents=True, exist_ok=True)
                (folder / "bin/python").touch()
            run.side_effect = make
            build.environment(folder, requirements)
            build.environment(folder, requirements)
            self.assertEqual(run.call_count, 2)   # venv and pip, once
            requirements.write_text("Sphinx==2\n")
            build.environment(folder, requirements)
            self.assertEqual(run.call_count, 4)

    def test_what_cannot_be_installed_is_said(self):
        with self.assertRaisesRegex(build.SetupError, "^needs network\nno route$"):
            build.run_quietly([sys.executable, "-c", "import sys; print('no route'); sys.exit(1)"], "needs network")


if __name__ == "__main__":
    unittest.main()
