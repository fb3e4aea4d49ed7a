"""Tests of check.py and browser.py: a small site without a fault, then each fault planted alone. Needs Chromium and
build/site/check-venv, which site/check.py makes; without them the tests of the browser are skipped."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

import browser
import check
import kernels
import record_traces
import replay_check

try:
    import playwright  # noqa: F401
    WHY_NOT = None if browser.find_chromium() else "no Chromium"
except ModuleNotFoundError:
    WHY_NOT = "no Playwright: run this with build/site/check-venv/bin/python"

HEAD = ('<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{}</title>'
        '<link rel="stylesheet" href="{}style.css"></head><body><main>')
FRONT = HEAD.format("Front", "") + """<h1>Front</h1><p>Text, and <a href="day15/index.html">day 15</a>.</p>
<form action="search.html"><label>Search <input name="q"></label></form><script>"use strict";
addEventListener("keydown", event => { if (event.key === "/") { event.preventDefault(); document.querySelector("input").focus(); } });
</script></main></body></html>"""
DAY = HEAD.format("Day 15", "../") + """<h1>Day</h1><p>Thread coarsening</p><details><summary>Answer</summary>42</details></main></body></html>"""
SEARCH = HEAD.format("Search", "") + """<h1>Search</h1><ul id="search-results"></ul><script>"use strict";
const word = new URLSearchParams(location.search).get("q");
if (word === "shuffle") document.querySelector("ul").innerHTML = '<li><a href="day15/index.html">Day</a><p class="search-context">a shuffle</p></li>';
</script></main></body></html>"""
STYLE = """body { color: #222; background: #fff } a { color: #0645ad }
@media (prefers-color-scheme: dark) { body { color: #ddd; background: #111 } a { color: #9cf } }"""
QUIZ = HEAD.format("Quiz", "") + """<h1>Quiz</h1><ol><li><p id="asked">How many?</p><form class="quiz-form"><label>Answer <input type="text"></label>
<button>Check</button><p role="status"></p></form><details class="quiz-answer" data-key="4"><summary>Answer</summary>4</details></li></ol><script>"use strict";
document.querySelector("input").setAttribute("aria-describedby", "asked");
document.querySelector("form").addEventListener("submit", event => { event.preventDefault();
  document.querySelector("[role=status]").textContent = document.querySelector("input").value === "4" ? "Right." : "It is 4."; document.querySelector("details").open = true;
  localStorage.setItem("quiz", "{\\"1\\": false}"); });</script></main></body></html>"""
LINES = HEAD.format("Lines", "") + """<h1>Lines</h1><div class="quiz" data-day="day01"><ol><li><p>Which line adds?</p>
<pre class="quiz-code" tabindex="0" role="region" aria-label="Lines 7 to 9 of sum"><span class="quiz-line" data-line="7">__global__ void sum(int n) {</span>
<span class="quiz-line" data-line="8">    total += in[threadIdx.x];</span>
<span class="quiz-line" data-line="9">} // the end of it</span></pre>
<details class="quiz-answer" data-quiz="day01/1" data-key="line 8" data-expected="the number of a line" data-kind="line" data-value="8"><summary>Answer</summary>8</details>
</li></ol></div><link rel="stylesheet" href="quiz.css"><script src="quiz.js"></script></main></body></html>"""
SOURCE = """<style>body { margin: 1rem }</style><link rel="stylesheet" href="kernel.css"><div class="kernel-box" tabindex="0" role="region" aria-label="Source"><table class="kernel-source"><thead><tr>
<th scope=col>line</th><th scope=col>re&shy;quests</th><th scope=col>sec&shy;tors</th><th scope=col>wave&shy;fronts</th><th scope=col>active lanes</th><th scope=col class=code>source</th></tr></thead>
<tbody><tr><th scope="row">111</th><td>64</td><td>1, 32</td><td class="poor">32 <span class="factor">×32</span></td><td>31.94</td>
<td class="code"><code>    const float value = in[blockIdx.x * blockDim.x + threadIdx.x] + in[blockIdx.x];</code></td></tr></tbody></table></div>"""
REPLAY = HEAD.format("Replay", "") + """<h1>Replay</h1><div class="replay-box" tabindex="0" role="group" aria-label="Replay"><p aria-live="polite"></p></div>
<script>"use strict"; let at = 0, timer = null; const show = () => { document.querySelector("p").textContent = `Step ${at}`; }; show();
document.querySelector("div").addEventListener("keydown", event => {
  if (event.key === "ArrowRight") at++;
  if (event.key === "Home") at = 0;
  if (event.key === "End") at = 99;
  if (event.key === " ") { if (timer) { clearInterval(timer); timer = null; } else timer = setInterval(() => { at++; show(); }, 300); }
  show(); });</script></main></body></html>"""
CHART = HEAD.format("Chart", "") + """<h1>Chart</h1><figure class="chart"><svg viewBox="0 0 100 100" width="100" height="100" role="img" aria-label="Chart">
<g data-series="0"><path class="chart-line" d="M10 10L90 90"/><path class="chart-point" data-x="10" data-y="10" d="M8 8h4v4h-4z"><title>one</title></path>
<path class="chart-point" data-x="90" data-y="90" d="M88 88h4v4h-4z"><title>two</title></path></g></svg>
<ul class="chart-legend"><li data-series="0">line</li></ul></figure><script>""" + (pathlib.Path(__file__).parent / "static/charts.js").read_text() + """</script></main></body></html>"""
THEME = HEAD.format("Theme", "") + """<h1>Theme</h1><button class="theme-toggle">Theme</button><script>"use strict";
const show = () => { document.body.style.background = localStorage.getItem("theme") || "white"; }; show();
document.querySelector("button").addEventListener("click", () => { localStorage.setItem("theme", "black"); show(); });</script></main></body></html>"""
SLIDES = HEAD.format("Slides", "") + """<section class="slide"><h1>1</h1></section><section class="slide">2</section><section class="slide">3</section>
<style>.stepped .slide:not(.current) { display: none } @media print { .stepped .slide { display: block !important; break-after: page } .slide:last-child { break-after: auto } }</style>
<script>"use strict"; const all = [...document.querySelectorAll(".slide")]; let at = 0;
const show = to => { at = Math.min(Math.max(to, 0), 2); all.forEach((one, i) => one.classList.toggle("current", i === at)); };
document.documentElement.classList.add("stepped"); show(0);
addEventListener("keydown", event => { const keys = { ArrowRight: at + 1, PageDown: at + 1, ArrowLeft: at - 1, Home: 0, End: 2 };
  if (event.key in keys) show(keys[event.key]);
  if (event.key === "a") document.documentElement.classList.toggle("stepped"); });</script></main></body></html>"""

RUN_HERE = HEAD.format("Run here", "") + """<h1>Run here</h1><div class="run-here" data-run='{"kernel": "sum", "sizes": [{"label": "elements",
"value": 10, "most": 2000}], "grid": {"label": "blocks", "value": 1, "most": 8}, "block": [{"label": "threads of a block", "value": 256, "most": 1024}]}'>
<p class="run-here-without">This needs JavaScript.</p></div><script src="run_here.js"></script></main></body></html>"""
# In place of the kernels: a sum that is right with blocks of 256 threads.
RUN_HERE_KERNELS = """window.runHereKernels = function () { self.onmessage = ({data: {numbers: [n, , , blocks, block]}}) => self.postMessage({
  said: [], ms: 1, result: JSON.stringify({results: 1, wrong: block === 256 ? 0 : 1, first: 0, got: "nan", expected: "1", blocks,
  threads: blocks * block, switches: 0})}); };"""


class SmallSite(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        for name, text in {"index.html": FRONT, "day15/index.html": DAY, "search.html": SEARCH, "style.css": STYLE, "quiz.html": QUIZ, "lines.html": LINES, "quiz.js": (check.HERE / "static/quiz.js").read_text(), "quiz.css": (check.HERE / "static/quiz.css").read_text(),
                           "replay.html": REPLAY, "slides.html": SLIDES, "theme.html": THEME, "chart.html": CHART, "run_here.html": RUN_HERE, "run_here_kernels.js": RUN_HERE_KERNELS,
                           "run_here.js": (check.HERE / "static/run_here.js").read_text()}.items():
            (self.root / name).parent.mkdir(exist_ok=True)
            (self.root / name).write_text(text)

    def plant(self, name, before, after):
        path = self.root / name
        self.assertIn(before, path.read_text())
        path.write_text(path.read_text().replace(before, after))


class Command(SmallSite):
    def run_check(self, *arguments):
        return subprocess.run([sys.executable, check.__file__, *arguments], capture_output=True, text=True, check=False)

    def test_links_pass_and_the_last_line_counts(self):
        done = self.run_check("--links", "--html", str(self.root))
        self.assertEqual((done.returncode, done.stdout.splitlines()[-1]), (0, "2 passed, 0 failed, 0 skipped"))

    def test_a_broken_anchor_fails(self):
        self.plant("index.html", "day15/index.html", "day15/index.html#nowhere")
        done = self.run_check("--links", "--html", str(self.root))
        self.assertEqual((done.returncode, done.stdout.splitlines()[-1]), (1, "1 passed, 1 failed, 0 skipped"))
        self.assertIn("index.html:1: day15/index.html#nowhere: day15/index.html has no id 'nowhere'", done.stdout)

    def test_a_level_of_headings_that_is_left_out_fails(self):
        self.plant("day15/index.html", "</h1>", "</h1><h3>Deep</h3><h1>Again</h1>")
        done = self.run_check("--links", "--html", str(self.root))
        self.assertEqual((done.returncode, done.stdout.splitlines()[-1]), (1, "1 passed, 1 failed, 0 skipped"))
        self.assertIn("day15/index.html: h3 follows h1", done.stdout)
        self.assertIn("day15/index.html: 2 headings h1; expected one", done.stdout)

    def test_a_directory_without_a_site_is_an_error(self):
        done = self.run_check("--html", str(self.root / "day16"))
        self.assertEqual(done.returncode, 2)
        self.assertIn("has no index.html; expected a built site: ./course site", done.stderr)


class InBrowser(SmallSite):
    @classmethod
    def setUpClass(cls):
        cls.chromium = browser.Browser("/").__enter__()

    @classmethod
    def tearDownClass(cls):
        cls.chromium.__exit__()

    def faults(self, check_it, path, *arguments):
        self.chromium.root = self.root.resolve()
        return check_it(self.chromium, path, *arguments)

    def expect(self, message, check_it, path, *arguments):
        found = self.faults(check_it, path, *arguments)
        self.assertTrue(any(message in fault for fault in found), f"{found}; expected '{message}'")


@unittest.skipIf(WHY_NOT, WHY_NOT)
class Pages(InBrowser):
    def test_sound_pages_have_no_faults(self):
        for path in ("index.html", "day15/index.html", "search.html"):
            for size in browser.SIZES:
                self.assertEqual(self.faults(browser.check_looks, path, size), [])
        self.assertEqual(self.faults(browser.check_search, "index.html", {"shuffle": ["day15"]}), [])
        self.assertEqual(self.faults(browser.check_without_javascript, "day15/index.html", ["Thread coarsening"]), [])
        self.assertEqual(self.faults(browser.check_quiz, "quiz.html"), [])
        self.assertEqual(self.faults(browser.check_quiz, "lines.html"), [])
        self.assertEqual(self.faults(browser.check_replay, "replay.html"), [])
        self.assertEqual(self.faults(browser.check_slides, "slides.html"), [])
        self.assertEqual(self.faults(browser.check_theme, "theme.html"), [])
        self.assertEqual(self.faults(browser.check_run_here, "run_here.html"), [])
        self.assertEqual(self.faults(browser.check_chart, "chart.html"), [])

    def test_pale_text(self):
        self.plant("style.css", "color: #222", "color: #999")
        self.expect("axe color-contrast", browser.check_looks, "index.html", "phone")

    def test_pale_text_in_the_dark_only(self):
        self.plant("style.css", "color: #ddd", "color: #333")
        self.expect("dark: axe color-contrast", browser.check_looks, "index.html", "phone")

    def test_a_small_target(self):
        self.plant("index.html", "<form", '<p><a href="search.html">a</a><br><a href="quiz.html">b</a></p><style>p a { font-size: 8px; line-height: 9px; display: inline-block }</style><form')
        self.expect("axe target-size", browser.check_looks, "index.html", "desktop")

    def test_a_field_without_a_label(self):
        self.plant("index.html", "<label>Search <input", "<label>Search</label><input")
        self.expect("axe label", browser.check_looks, "index.html", "desktop")

    def test_an_error_of_the_console(self):
        self.plant("index.html", '"use strict";', 'console.error("oh");')
        self.expect("console: oh", browser.check_looks, "index.html", "phone")

    def test_an_exception_of_a_script(self):
        self.plant("index.html", '"use strict";', "noSuchFunction();")
        self.expect("script: noSuchFunction is not defined", browser.check_looks, "index.html", "phone")

    def test_a_script_of_another_host(self):
        self.plant("index.html", "<script>", '<script src="http://127.0.0.1:9/a.js"></script><script>')
        self.expect("asks another host: http://127.0.0.1:9/a.js", browser.check_looks, "index.html", "phone")

    def test_a_page_that_scrolls_sideways_on_a_phone_only(self):
        self.plant("index.html", "<h1>", '<h1 class="wide" style="width: 700px">')
        self.expect("the page scrolls sideways: h1.wide reaches to 708 of 390 px", browser.check_looks, "index.html", "phone")
        self.assertEqual(self.faults(browser.check_looks, "index.html", "desktop"), [])

    def test_code_that_a_phone_cuts(self):
        self.plant("index.html", "</h1>", """</h1><article><div class="highlight-cuda"><pre tabindex="0" role="region" aria-label="Code"
style="overflow-x: auto">const float a_long_line_of_code = of_a_kernel + that_has_names; // which is wide</pre></div></article>""")
        self.expect("code is wider than a phone; expected lines that wrap: const float a_long", browser.check_looks, "index.html", "phone")
        self.assertEqual(self.faults(browser.check_looks, "index.html", "desktop"), [])

    def test_a_result_without_a_line_of_its_page(self):
        self.plant("search.html", "a shuffle", "a warp")
        self.expect("'shuffle': no result shows a line with it", browser.check_search, "index.html", {"shuffle": ["day15"]})

    def test_a_term_that_is_found_on_the_wrong_page(self):
        self.expect("'shuffle': none of day16 is among the first results: day15", browser.check_search, "index.html", {"shuffle": ["day16"]})

    def test_a_search_that_the_keyboard_does_not_reach(self):
        self.plant("index.html", '"/"', '"#"')
        self.expect("/ does not focus the search", browser.check_search, "index.html", {"shuffle": ["day15"]})

    def test_a_theme_that_does_not_change(self):
        self.plant("theme.html", 'show(); });', '});')
        self.expect("Enter does not change the theme", browser.check_theme, "theme.html")

    def test_a_theme_that_is_forgotten(self):
        self.plant("theme.html", "show();\n", "localStorage.clear(); show();\n")
        self.expect("after the page is opened again", browser.check_theme, "theme.html")

    def test_text_that_only_a_script_shows(self):
        self.plant("day15/index.html", "Thread coarsening", '<script>document.write("Thread coarsening")</script>')
        self.expect("'Thread coarsening' is not to be seen", browser.check_without_javascript, "day15/index.html", ["Thread coarsening"])

    def test_an_answer_that_opens_to_nothing(self):
        self.plant("day15/index.html", "42", "<script>document.write(42)</script>")
        self.expect("opens to nothing", browser.check_without_javascript, "day15/index.html", [])

    def test_a_quiz_that_says_nothing(self):
        self.plant("quiz.html", '"It is 4."', '""')
        self.expect("neither right nor wrong", browser.check_quiz, "quiz.html")

    def test_a_quiz_that_judges_wrongly(self):
        self.plant("quiz.html", '=== "4"', '!== "4"')
        self.expect("question 1: '-1' is judged 'Right.'; expected wrong: the key is '4'", browser.check_quiz, "quiz.html")
        self.expect("question 1: '4' is judged 'It is 4.'; expected right: the key is '4'", browser.check_quiz, "quiz.html")

    def test_a_line_that_is_not_marked(self):
        self.plant("quiz.html", '<label>Answer <input type="text"></label>', '<fieldset><legend>Lines</legend><label><input type="radio" name="a" value="3"> 3</label>'
                   '<label><input type="radio" name="a" value="4"> 4</label></fieldset><label>Answer <input type="text"></label>')
        self.plant("quiz.html", 'data-key="4"', 'data-key="line 4"')
        self.plant("quiz.html", 'document.querySelector("input").value', 'document.querySelector("input[type=text]").value')
        self.expect("its line is not marked when its number is typed", browser.check_quiz, "quiz.html")

    def test_lines_whose_text_cannot_be_selected(self):
        self.plant("quiz.css", "appearance: none; width: 0; height: 0;", "appearance: none; position: absolute; inset: 0; width: 100%; height: 100%;")
        self.expect("question 1: dragging over its lines selects ''", browser.check_quiz, "lines.html")

    def test_a_line_whose_focus_is_not_seen(self):
        self.plant("quiz.css", ".quiz-lines label:has(:focus-visible) {", ".quiz-lines label:has(:active) {")
        self.expect("the one that has the focus is not marked", browser.check_quiz, "lines.html")

    def test_a_line_that_is_only_known_by_its_number(self):
        self.plant("quiz.js", '.replace(/^line /i, "")', "")
        self.expect("question 1: '8' is judged", browser.check_quiz, "lines.html")

    def test_fields_without_their_question(self):
        self.plant("quiz.js", '"aria-describedby"', '"title"')
        self.expect("question 1: its fields are described by ['', '']; expected the question", browser.check_quiz, "lines.html")

    def test_a_quiz_that_opens_no_answer(self):
        self.plant("quiz.html", ".open = true", ".open = false")
        self.expect("does not open the answer", browser.check_quiz, "quiz.html")

    def test_a_quiz_that_forgets(self):
        self.plant("quiz.html", "localStorage.setItem", "String")
        self.expect("no answer is kept", browser.check_quiz, "quiz.html")

    def test_a_quiz_that_Tab_does_not_reach(self):
        self.plant("quiz.html", '<input type="text">', '<input type="text" tabindex="-1">')
        self.plant("quiz.html", "<button>", '<button tabindex="-1">')
        self.expect("Tab does not reach it", browser.check_quiz, "quiz.html")

    def test_a_chart_whose_figures_a_finger_cannot_keep(self):
        self.plant("chart.html", 'event.pointerType !== "touch"', "true")
        self.expect("chart 1: the figure of a tap is '' when the finger is lifted; expected 'one'", browser.check_chart, "chart.html")

    def test_a_chart_that_does_not_know_taps(self):
        self.plant("chart.html", 'svg.addEventListener("pointerdown", showNearest);', "")
        self.expect("chart 1: a tap on a point shows no figure", browser.check_chart, "chart.html")

    def test_a_chart_that_arrow_keys_do_not_walk(self):
        self.plant("chart.html", "show(own[place]);", "show(own[0]);")
        self.expect("chart 1, line: after ArrowRight twice the figures are ['one', 'one']", browser.check_chart, "chart.html")

    def test_a_replay_that_does_not_pause(self):
        self.plant("replay.html", "clearInterval(timer)", "")
        self.expect("does not pause", browser.check_replay, "replay.html")

    def test_a_replay_that_does_not_play(self):
        self.plant("replay.html", "at++; show();", "")
        self.expect("does not play", browser.check_replay, "replay.html")

    def test_a_replay_without_a_text_for_screen_readers(self):
        self.plant("replay.html", "`Step ${at}`", '"Step"')
        self.expect("expected another step each time", browser.check_replay, "replay.html")

    def test_a_kernel_in_the_page_that_is_wrong(self):
        self.plant("run_here_kernels.js", "block === 256 ? 0", "n === 1000 ? 0")
        self.expect("'elements': 1025, 'blocks': 4, 'threads of a block': 256} the page says 'Wrong: the sum is NaN", browser.check_run_here, "run_here.html")

    def test_a_kernel_in_the_page_that_is_never_wrong(self):
        self.plant("run_here_kernels.js", "0 : 1", "0 : 0")
        self.expect("expected 'Wrong'", browser.check_run_here, "run_here.html")

    def test_a_kernel_in_the_page_that_runs_too_few_threads(self):
        self.plant("run_here_kernels.js", "blocks * block", "block")
        self.expect("expected '768 threads ran in 3 blocks'", browser.check_run_here, "run_here.html")

    def test_a_kernel_in_the_page_that_stop_does_not_stop(self):
        self.plant("run_here.js", 'say("", "Stopped.")', "")
        self.expect("after Stop the page says", browser.check_run_here, "run_here.html")

    def test_a_kernel_in_the_page_that_cannot_be_loaded(self):
        (self.root / "run_here_kernels.js").unlink()
        self.expect("the kernels cannot be loaded", browser.check_run_here, "run_here.html")

    def test_a_site_that_was_built_without_emscripten(self):
        (self.root / "run_here.html").write_text(FRONT)
        with self.assertRaises(browser.NotThere):
            self.faults(browser.check_run_here, "run_here.html")
        (self.root / "_static").mkdir()
        (self.root / "_static/run_here_kernels.js").write_text(RUN_HERE_KERNELS)
        self.expect("there is no form, although", browser.check_run_here, "run_here.html")

    def test_slides_that_run_past_the_last_one(self):
        self.plant("slides.html", "Math.min(Math.max(to, 0), 2)", "to")
        self.expect("after 'ArrowRight' the slides [] are shown", browser.check_slides, "slides.html")

    def test_slides_that_share_a_page_of_paper(self):
        self.plant("slides.html", "break-after: page", "")
        self.expect("3 slides are printed on 1 pages", browser.check_slides, "slides.html")


@unittest.skipIf(WHY_NOT, WHY_NOT)
class Replays(InBrowser):
    """Replays of stored and of made-up traces, on pages with nothing else, and with a fault in replay.js."""

    def write_page(self, *traces, script=""):
        replays = "\n".join(kernels.replay(check.ROOT, trace, number) for number, trace in enumerate(traces, 1))
        text = (check.HERE / "static/replay.js").read_text()
        for before, after in [script] if script else []:
            self.assertIn(before, text)
            text = text.replace(before, after)
        (self.root / "replay.js").write_text(text)
        (self.root / "kernel.html").write_text(HEAD.format("Kernel", "") + f'<h1>Kernel</h1>{replays}<script src="replay.js"></script></main></body></html>')

    def faults_of(self, *traces, script=""):
        self.write_page(*traces, script=script)
        return self.faults(replay_check.check, "kernel.html", traces)

    @staticmethod
    def stored(day, version):
        return [one for one in record_traces.read(check.ROOT / f"docs/traces/{day}.jsonl") if one["version"] == version]

    @staticmethod
    def made_up(space, size, *recorded):
        place = {"file": "made_up.cuh", "line": 0, "kind": "load", "space": space, "bytes": size, "array": "in"}
        return {"day": "day99", "version": "v", "kernel": "k", "steps": len(recorded), "places": [place], "recorded": recorded}

    def test_stored_traces_are_shown_as_they_are(self):
        for day, version in (("day06_transpose", "tiled"), ("day06_transpose", "padded"), ("day15_reduction", "shuffle"), ("day03_warps_and_scheduling", "uniform"),
                             ("day40_tensor_cores", "mma_sync"), ("day41_hopper_matmul", "tma_wgmma"), ("day43_hopper_attention", "ping_pong")):
            with self.subTest(day=day, version=version):
                self.assertTrue(self.stored(day, version))
                self.assertEqual(self.faults_of(*self.stored(day, version)), [])

    def test_a_kernel_has_room_on_a_phone(self):
        style = (check.HERE / "static/kernel.css").read_text()
        for before, after, fault in (("", "", ""), ("writing-mode: vertical-rl;", "", "of the width; expected 30 % at most"),
                                     (".replay .kernel-box th, .replay .kernel-box td { padding: 0.05rem 0.25rem; white-space: normal;", ".none {", "it scrolls sideways: The steps of transpose_tiled"),
                                     ("white-space: pre-wrap; overflow-wrap: anywhere; padding-left", "padding-left", "it scrolls sideways: Source")):
            self.assertIn(before, style)
            self.write_page(*self.stored("day06_transpose", "tiled"))
            self.plant("kernel.html", "<script src", SOURCE + "<script src")
            (self.root / "kernel.css").write_text(style.replace(before, after) if before else style)
            if fault:
                self.expect(fault, browser.check_kernel_on_a_phone, "kernel.html")
            else:
                self.assertEqual(self.faults(browser.check_kernel_on_a_phone, "kernel.html"), [])
        (self.root / "kernel.css").write_text(style)
        self.plant("replay.js", "Math.min(this.tallest, 1.5 * this.box.offsetHeight)", "this.tallest")
        self.expect("of the replay's first step are empty", browser.check_kernel_on_a_phone, "kernel.html")

    def test_accesses_of_one_byte_and_of_sixteen(self):
        every_fifth = self.made_up("global", 1, [0, 0xFFFFFFFF, 5, 1, 0, 5, 32], [0, 0x80000001, 2, 1, 3, 40, 2])
        rows = self.made_up("shared", 16, [0, 0xFF, 2, 1, 0, 128, 8], [0, 0xFFFFFFFF, 1, 1, 64, 0, 32])
        self.assertEqual(self.faults_of(every_fifth, rows), [])

    def test_steps_that_are_no_accesses(self):
        places = [{"file": "made_up.cuh", "line": 0, "kind": kind, "bytes": 64} for kind in ("bulk_load", "bulk_store", "arrival", "wait", "collective", "blocks_barrier", "barrier")]
        waits = {**self.made_up("global", 4, *[[number, 0xFFFFFFFF] for number in range(len(places))]), "places": places}
        self.assertEqual(self.faults_of(waits), [])
        for before, after, fault in (('"issues the copy"', '"copies"', "Lane 0 copies.; expected Lane 0 issues the copy."), ('"takes part"', '"waits"', "expected Lane")):
            self.assertIn(fault, self.faults_of(waits, script=(before, after))[0])

    def test_replays_of_each_kind_of_step_are_checked(self):
        words, octets = self.made_up("global", 4, [0, 1, 1, 1, 0, 0, 1]), self.made_up("global", 8, [0, 1, 1, 1, 0, 0, 1])
        longer = {**self.made_up("shared", 4, [0, 1, 1, 1, 0, 0, 1], [0, 1, 1, 1, 4, 0, 1]), "version": "longer"}
        tiled = {**words, "version": "tiled"}
        days = [("day01", [words]), ("day02", [words]), ("day03", [words, longer]), ("day06", [words, tiled]), ("day07", [octets]), ("day08", [longer])]
        self.assertEqual(check.replays_to_check(days), [("day01", [words]), ("day03", [longer]), ("day06", [tiled]), ("day07", [octets])])

    def test_of_steps_that_are_alike_two_are_checked(self):
        alike = self.made_up("global", 4, *[[0, 1, 1, 1, 4 * number, 0, 1] for number in range(4)], [0, 3, 1, 1, 0, 4, 2], [0, 3, 2, 1, 0, 32, 2], [0, 1, 1, 1, 0, 0, 1])
        self.assertEqual(list(replay_check.to_check(alike)), [0, 1, 4, 5])
        self.assertEqual(self.faults_of(alike), [])

    def test_bytes_are_counted_as_words(self):
        script = ("${bytesOf(step)}", "${words.size * WORD}")
        found = self.faults_of(self.made_up("global", 1, [0, 0xFFFFFFFF, 5, 1, 0, 5, 32]), script=script)
        self.assertIn("of which the lanes access 128 of 160 bytes", found[0])
        self.assertIn("; expected '5 sectors of 32 bytes, of which the lanes access 32 of 160 bytes.' in it", found[0])

    def test_wrong_shifts_of_lanes_banks_and_sectors(self):
        tiled = self.stored("day06_transpose", "tiled")
        for before, after in (("offsets[lane] = active[i]", "offsets[(lane + 1) % LANES] = active[i]"), ("step.mask >>> lane & 1", "step.mask >>> (lane ^ 1) & 1"),
                              ("++inBank[word % BANKS]", "++inBank[(word >> 1) % BANKS]"), ("this.word(r * BANKS + bank,", "this.word(r * BANKS + (bank ^ 1),"),
                              ("byte / WORD) % BANKS", "byte / SECTOR) % BANKS"), ("sector * SECTOR / WORD + w", "sector * SECTOR / WORD + 7 - w"),
                              ("word * WORD / SECTOR", "word * WORD / (2 * SECTOR)")):
            with self.subTest(fault=after):
                odd = self.made_up("shared", 4, [0, 0x55555555, 1, 1, 0, 4, 16])
                self.assertNotEqual(self.faults_of(*tiled, odd, script=(before, after)), [])


if __name__ == "__main__":
    unittest.main()
