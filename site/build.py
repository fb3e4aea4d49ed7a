#!/usr/bin/env python3
"""Builds the site: static pages made from the Markdown of the tree, which work from file: and without JavaScript.

usage: ./course site [--out DIR] [--base PATH] [--repository URL] [--serve [PORT]]

  --out DIR         where the pages go; default: build/site/html
  --base PATH       where the site lies on its server, for links of the page 404.html; default: /
  --repository URL  where a reader can clone the course: the front page and the sidebar link to it; default: no link
  --serve [PORT]    then serves the pages on 127.0.0.1, port 8000 or PORT, until Ctrl-C

The generator, Sphinx, is installed into build/site/venv on the first run, which needs network. Later runs reuse it.

Exit codes: 0 the site is built, 1 an error or a warning of the build, 2 a wrong argument or a missing tool.
"""
import argparse
import functools
import hashlib
import http.server
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
SITE = ROOT / "site"
BUILD = ROOT / "build" / "site"


class SetupError(Exception):
    """Something that the build needs is missing."""


def port_number(text):
    if not text.isdecimal() or not 0 < int(text) < 65536:
        raise argparse.ArgumentTypeError(f"is '{text}'; expected a port, 1 to 65535")
    return int(text)


def base_path(text):
    if not (text.startswith("/") and text.endswith("/")):
        raise argparse.ArgumentTypeError(f"is '{text}'; expected a path that starts and ends with /")
    return text


def web_address(text):
    if not re.fullmatch(r"https?://[^\s()<>\"]+", text):
        raise argparse.ArgumentTypeError(f"is '{text}'; expected an address that starts with https://")
    return text


def parse(arguments):
    parser = argparse.ArgumentParser(prog="course site", usage="./course site [--out DIR] [--base PATH] [--repository URL] [--serve [PORT]]",
                                     description="Builds the site, with Sphinx in build/site/venv.")
    parser.add_argument("--out", metavar="DIR", type=pathlib.Path, default=BUILD / "html", help="where the pages go; default: build/site/html")
    parser.add_argument("--base", metavar="PATH", type=base_path, default="/", help="where the site lies on its server; default: /")
    parser.add_argument("--repository", metavar="URL", type=web_address, help="where a reader can clone the course; default: no link")
    parser.add_argument("--serve", metavar="PORT", type=port_number, nargs="?", const=8000, help="then serve it on 127.0.0.1; default: port 8000")
    return parser.parse_args(arguments)


def run_quietly(command, failure):
    """Runs a command; if it fails, raises a SetupError with the end of its output."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        end = "\n".join((done.stdout + done.stderr).strip().splitlines()[-3:])
        raise SetupError(f"{failure}\n{end}")


def environment(folder=BUILD / "venv", requirements=SITE / "requirements.txt"):
    """The Python of a virtual environment that has the requirements: the one that is there, if it was made from the same text; else a new one."""
    python = folder / "bin" / "python"
    made_from = folder / "made_from"
    wanted = hashlib.sha256(requirements.read_bytes()).hexdigest()
    if python.exists() and made_from.exists() and made_from.read_text(encoding="utf-8") == wanted:
        return python
    print(f"course: installing the site's generator into {folder.relative_to(ROOT) if folder.is_relative_to(ROOT) else folder}", file=sys.stderr)
    shutil.rmtree(folder, ignore_errors=True)
    run_quietly([sys.executable, "-m", "venv", str(folder)],
                "python3 cannot make a virtual environment; apt-get install python3-venv, then try again")
    run_quietly([str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary", ":all:", "-r", str(requirements)],
                f"pip could not install {requirements.name}; the first build needs network (or PIP_INDEX_URL, the address of a mirror)")
    made_from.write_text(wanted, encoding="utf-8")
    return python


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves a folder, and its 404.html for addresses that lead to nothing, as servers of static sites do."""

    def send_error(self, code, message=None, explain=None):
        page = pathlib.Path(self.directory) / "404.html"
        if code != http.HTTPStatus.NOT_FOUND or not page.is_file():
            super().send_error(code, message, explain)
            return
        body = page.read_bytes()
        self.send_response(code, message)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def serve(folder, port):
    handler = functools.partial(Handler, directory=str(folder))
    try:
        server = http.server.ThreadingHTTPServer(("127.0.0.1", port), handler)
    except OSError as error:
        raise SetupError(f"--serve is {port}: {error.strerror}; expected a free port") from error
    with server:
        print(f"http://127.0.0.1:{port}/, until Ctrl-C", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            pass


def describe(folder, seconds):
    files = [path for path in folder.rglob("*") if path.is_file()]
    pages = sum(path.suffix == ".html" for path in files)
    megabytes = sum(path.stat().st_size for path in files) / 1e6
    print(f"{folder / 'index.html'}: {pages} pages, {megabytes:.1f} MB, built in {seconds:.0f} s")


def build(out, base, repository=None):
    """Stages the sources and runs Sphinx; returns its exit code. Runs with the Python of the virtual environment."""
    import run_here
    import stage
    from sphinx.cmd.build import main as sphinx

    source = BUILD / "source"
    try:
        print(f"course: {run_here.build(ROOT)}", file=sys.stderr)
    except run_here.BuildError as error:
        print(f"course: the kernels that run in the pages cannot be compiled: {error}", file=sys.stderr)
        return 1
    errors = stage.stage(ROOT, source, repository)
    for error in errors:
        print(error, file=sys.stderr)
    if errors:
        print(f"course: {len(errors)} links lead to nothing that the site has", file=sys.stderr)
        return 1
    code = sphinx(["-b", "html", "-c", str(SITE), "-d", str(BUILD / "doctrees"), "-j", "auto", "-q", "-W", "--keep-going",
                   "-D", f"course_base={base}", str(source), str(out)])
    if code == 0:
        stage.remove_pages_of_before(source, out)
        run_here.remove_script_of_before(ROOT, out)
    return 1 if code else 0  # Sphinx's 2 is a crash, ours a missing tool


def check_folder(out):
    """Pages that a site no longer has are removed from its folder: it must hold nothing else."""
    if out.exists() and not out.is_dir():
        raise SetupError(f"--out is {out}, a file; expected a directory")
    if out.is_dir() and any(out.iterdir()) and not (out / ".buildinfo").exists():
        raise SetupError(f"--out is {out}, which holds files that are not of a site; expected a new or an empty directory")


def build_and_serve(options):
    start = time.monotonic()
    check_folder(options.out)
    python = environment()
    if pathlib.Path(sys.prefix) == python.parent.parent:
        return build(options.out.resolve(), options.base, options.repository)
    repository = ["--repository", options.repository] if options.repository else []
    code = subprocess.run([str(python), __file__, "--out", str(options.out), "--base", options.base, *repository]).returncode
    if code == 0:
        describe(options.out, time.monotonic() - start)
        if options.serve:
            serve(options.out, options.serve)
    return code


def main(arguments):
    options = parse(arguments)
    try:
        return build_and_serve(options)
    except SetupError as error:
        print(f"course: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    os.environ.setdefault("PYTHONDONTWRITEBYTECODE", "1")
    sys.exit(main(sys.argv[1:]))
