#!/usr/bin/env python3
"""Checks the built site: do all links lead somewhere, and does every type of page work in a browser?

usage: site/check.py [--html DIR] [--links] [--only TYPE...] [--install]
  --html DIR  the site to look at; default: build/site/html
  --links     only links, anchors, references to other hosts and headings, without a browser: about ten seconds
  --only TYPE of the checks in a browser, only these: types of pages, searching, theme, plain (without
              JavaScript), quiz by keyboard, charts, replay, "kernel on a phone", "numbers of replays", kernel in the page, slides by keyboard
  --install   only makes build/site/check-venv, with which test_check.py is run, too

Links are read from the HTML files. Everything else is done by Chromium (scripts/install_dependencies.sh --site), from file:, driven by
Playwright, which is installed into build/site/check-venv: each type of page at the width of a phone and of a desktop, in the light and
in the dark theme; the search; a quiz and a replay by keyboard; the lanes, addresses, banks and sectors of one version's replays of each
day; a day without JavaScript. 404.html comes from a server on this machine.

Exit codes: 0 all passed or skipped, 1 something failed, 2 a wrong argument or no site there.
"""
import argparse
import contextlib
import functools
import http.server
import pathlib
import re
import shutil
import subprocess
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
VENV = ROOT / "build/site/check-venv"
REQUIREMENTS = HERE / "requirements-check.txt"
sys.path[:0] = [str(HERE), str(ROOT / "scripts")]

import browser as browsers  # noqa: E402
import build  # noqa: E402
import page_links  # noqa: E402
import record_traces  # noqa: E402
import replay_check  # noqa: E402

# A page for each type; the first pattern that has a file counts.
PAGE_TYPES = {
    "front": ["index.html"],
    "part": ["part2/index.html"],
    "day": ["day15/index.html"],
    "exercises": ["day15/exercises/index.html"],
    "beyond": ["day15/beyond/index.html"],
    "measured": ["day21/measured/index.html"],  # with a sweep
    "kernel": ["kernels/day15/coarsened*", "kernels/day06/*", "kernels/*/*"],
    "quiz": ["day05/index.html"],
    "progress": ["progress/index.html", "progress.html"],
    "glossary": ["glossary/index.html", "glossary.html"],
    "book": ["book/index.html", "book.html"],
    "source": ["source/day15_reduction/reduction.cuh.html"],
    "GPU": ["gpus/h200*", "gpus/*", "gpu/*"],
    "slides": ["slides/day15/index.html", "slides/day15.html"],
    "changelog": ["changelog/index.html"],
    "search": ["search.html", "search/index.html"],
    "404": ["404.html"],
}
SEEN_ON_FRONT = [".sidebar-drawer", ".mobile-header"]  # the same on every page
# Of long pages axe, which takes long for contrast, sees the first rows, terms and lines: the others are of the same kind.
REPEATED = ["tbody tr:nth-of-type(n + 13)", ".term:nth-of-type(n + 13)", ".course-source .line:nth-of-type(n + 61)"]
# Terms, and where one of the first ten results must lead.
TERMS = {
    "bank conflict": ["day06", "day04", "glossary"],
    "coalesced": ["day06", "day04", "day01", "glossary"],
    "divergence": ["day03", "day15", "glossary"],
    "shuffle": ["day15", "day16", "glossary"],
    "occupancy": ["day03", "day07", "glossary"],
    "atomicAdd": ["day12", "day15"],
    "roofline": ["day05", "day07", "glossary"],
    "softmax": ["day20", "day21", "day25"],
    "mbarrier": ["day38", "day41", "glossary"],
    "Little's law": ["day04", "day15", "glossary"],
}


def page_of_kernel(browser, folder, version):
    page = f"kernels/{folder}/{version}"
    return f"{page}.html" if (browser.root / f"{page}.html").is_file() else f"{page}/index.html"


def replays_to_check(of_days):
    """[(folder, traces of a version)]: of each day the version with the longest trace, of day 6 the one with bank conflicts, but only
    where it has steps that none before has. All would take minutes more. `of_days`: [(folder, traces)]."""
    chosen, seen = [], set()
    for folder, traces in of_days:
        longest = max(traces, key=lambda trace: len(trace["recorded"]))["version"]
        version = {"day06": "tiled"}.get(folder, longest)
        traces = [trace for trace in traces if trace["version"] == version]
        steps = {(place["kind"], place.get("space"), place["bytes"] if "space" in place else 0) for trace in traces for place in trace["places"]}
        if folder == "day06" or not steps <= seen:
            chosen.append((folder, traces))
            seen |= steps
    return chosen


def check_replays(browser):
    paths = sorted((ROOT / record_traces.TRACES).glob("*.jsonl"))
    of_days = [(path.stem[:5] if path.stem.startswith("day") else path.stem, record_traces.read(path)) for path in paths]
    return [fault for folder, traces in replays_to_check(of_days)
            for fault in replay_check.check(browser, page_of_kernel(browser, folder, traces[0]["version"]), traces)]


# Name -> description, type of the page it begins on, check, its further arguments.
STEPS = {
    "searching": (f"the search finds {len(TERMS)} terms", "front", browsers.check_search, [TERMS]),
    "theme": ("the theme is switched and remembered", "day", browsers.check_theme, []),
    "plain": ("a day without JavaScript", "day", browsers.check_without_javascript, [["Thread coarsening", "You can now", "void reduce_shared_memory(const float* in, std::size_t n, float* out) {"]]),
    "quiz by keyboard": ("a quiz by keyboard", "quiz", browsers.check_quiz, []),
    "charts": ("charts by keyboard and by finger", "measured", browsers.check_chart, []),
    "replay": ("a replay by keyboard", "kernel", browsers.check_replay, []),
    "kernel on a phone": ("the source of a kernel has room on a phone, and a replay no empty box", "kernel",
                          lambda browser, _: browsers.check_kernel_on_a_phone(browser, page_of_kernel(browser, "day06", "tiled")), []),  # tall steps
    "numbers of replays": ("the lanes, addresses, banks and sectors of replays with each kind of step are those of the traces", "kernel", lambda browser, _: check_replays(browser), []),
    "kernel in the page": ("a kernel runs in the page and is verified", "kernel", browsers.check_run_here, []),
    "slides by keyboard": ("slides are turned by keys, and printed one on a page", "slides", browsers.check_slides, []),
}


class Tally:
    """Prints each check as it ends, and counts."""

    def __init__(self):
        self.passed = self.failed = self.skipped = 0

    def add(self, name, faults, seconds=None):
        took = "" if seconds is None else f", {seconds:.1f} s"
        if not faults:
            self.passed += 1
            print(f"passed: {name}{took}", flush=True)
            return
        self.failed += 1
        print(f"failed: {name}{took}")
        for fault in faults[:50]:
            print(f"    {fault}")
        if len(faults) > 50:
            print(f"    and {len(faults) - 50} more")
        sys.stdout.flush()

    def run(self, name, check, *arguments, **options):
        start = time.monotonic()
        try:
            faults = check(*arguments, **options)
        except browsers.NotThere as why:
            return self.skip(name, why)
        except Exception as error:  # noqa: BLE001: one check that cannot go on must not hide the others
            faults = [f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"]
        self.add(name, faults, time.monotonic() - start)

    def skip(self, name, reason):
        self.skipped += 1
        print(f"skipped: {name}: {reason}", flush=True)

    def end(self):
        print(f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped")
        return 1 if self.failed else 0


def install():
    """Makes the virtual environment unless it is there with these requirements. Returns why it cannot be made, or None."""
    stamp = VENV / "requirements.txt"
    if stamp.exists() and stamp.read_text() == REQUIREMENTS.read_text():
        return None
    shutil.rmtree(VENV, ignore_errors=True)
    for command in ([sys.executable, "-m", "venv", str(VENV)],
                    [str(VENV / "bin/python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement", str(REQUIREMENTS)]):
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode:
            last = (done.stdout.strip().splitlines() or ["no message"])[-1]
            return f"{' '.join(command[1:4])} failed ({last}); it needs python3-venv and, once, the network: scripts/install_dependencies.sh --site"
    shutil.copy(REQUIREMENTS, stamp)
    return None


def find_pages(html):
    """Type of page -> path of a page of that type, or None."""
    pages = {}
    for kind, patterns in PAGE_TYPES.items():
        found = (path for pattern in patterns for path in sorted(html.glob(pattern)))
        files = (path if path.is_file() else path / "index.html" for path in found)
        pages[kind] = next((path.relative_to(html).as_posix() for path in files if path.is_file()), None)
    return pages


def check_links(html, tally):
    start = time.monotonic()
    faults, pages, references = page_links.check(html)
    tally.add(f"links: {pages} pages, {references} references", faults, time.monotonic() - start)


def headings(text):
    """What is wrong with a page's headings: it has one h1, which comes first, and no level is left out."""
    levels = [int(level) for level in re.findall(r"<h([1-6])[ >]", text)]
    faults = [] if levels.count(1) == 1 else [f"{levels.count(1)} headings h1; expected one"]
    faults += [f"begins with h{levels[0]}"] if levels and levels[0] != 1 else []
    return faults + [f"h{after} follows h{before}" for before, after in dict.fromkeys(zip(levels, levels[1:])) if after > before + 1]


def check_headings(html, tally):
    start = time.monotonic()
    texts = {path.relative_to(html).as_posix(): path.read_text(encoding="utf-8") for path in sorted(html.rglob("*.html")) if "_static" not in path.parts}
    faults = [f"{name}: {fault}" for name, text in texts.items() if 'http-equiv="refresh"' not in text for fault in headings(text)]
    tally.add(f"headings: {len(texts)} pages", faults, time.monotonic() - start)


@contextlib.contextmanager
def served(html):
    """Serves the site as ./course site --serve does; yields its address. 404.html is shown at addresses that do not exist."""
    class Quiet(build.Handler):
        def log_message(self, *_):
            pass
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(html))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()


def check_in_browser(html, tally, only):
    pages = find_pages(html)
    with browsers.Browser(html) as browser:
        for kind, path in pages.items():
            if only and kind not in only:
                continue
            if path is None:
                tally.add(f"{kind} page", [f"there is none of {', '.join(PAGE_TYPES[kind])}"])
                continue
            with served(html) if kind == "404" else contextlib.nullcontext("") as address:
                for size in browsers.SIZES:
                    tally.run(f"{kind} page {path}, {size}", browsers.check_looks, browser, f"{address}no/such/{path}" if address else path, size,
                              REPEATED + (SEEN_ON_FRONT if kind != "front" else []))
        for name, (description, kind, check, arguments) in STEPS.items():
            if pages[kind] and (not only or name in only):
                tally.run(description, check, browser, pages[kind], *arguments)


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--html", type=pathlib.Path, default=ROOT / "build/site/html")
    parser.add_argument("--links", action="store_true")
    parser.add_argument("--only", nargs="+", metavar="TYPE", choices=sorted({*PAGE_TYPES, *STEPS}))
    parser.add_argument("--install", action="store_true")
    options = parser.parse_args(arguments)
    if options.install:
        why = install()
        print(why or f"{VENV.relative_to(ROOT)} is there", file=sys.stderr if why else sys.stdout)
        return 1 if why else 0
    html = options.html.resolve()
    if not (html / "index.html").is_file():
        print(f"check.py: --html is {options.html}, which has no index.html; expected a built site: ./course site", file=sys.stderr)
        return 2
    in_venv = pathlib.Path(sys.prefix) == VENV
    chromium = browsers.find_chromium()
    if not in_venv and not options.links and chromium:
        why = install()
        if why is None:
            return subprocess.run([str(VENV / "bin/python"), __file__, *arguments], check=False).returncode
    tally = Tally()
    if not options.only:
        check_links(html, tally)
        check_headings(html, tally)
    if options.links:
        return tally.end()
    if not in_venv:
        tally.skip("the browser", why if chromium else "no Chromium; scripts/install_dependencies.sh --site installs it")
        return tally.end()
    check_in_browser(html, tally, options.only)
    return tally.end()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
