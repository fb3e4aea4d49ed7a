#!/usr/bin/env python3
"""Draws the figures of the days that are computed from the index arithmetic of their lessons.

    scripts/draw_figures.py                # writes dayNN_*/figures/NAME.svg
    scripts/draw_figures.py --check        # writes nothing; exit code 1 if a figure would change

scripts/figures/dayNN.py has the functions that draw, one for each name in its FIGURES.
"""

import argparse
import importlib
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def figures():
    """(path, text) of every figure."""
    for module in sorted((ROOT / "scripts" / "figures").glob("day*.py")):
        (day,) = ROOT.glob(f"{module.stem}_*")
        for name, draw in importlib.import_module(f"figures.{module.stem}").FIGURES.items():
            yield day / "figures" / f"{name}.svg", draw()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit code 1 if a figure would change")
    check = parser.parse_args().check
    stale = []
    for path, text in figures():
        if path.exists() and path.read_text() == text:
            continue
        stale.append(str(path.relative_to(ROOT)))
        if not check:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
    if check and stale:
        sys.exit("\n".join(stale) + "\nnot as drawn by their functions; run scripts/draw_figures.py")


if __name__ == "__main__":
    main()
