#!/usr/bin/env python3
"""Tests of charts.py: what is shown of which records, and that every day's charts are well-formed."""

import json
import pathlib
import re
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree

import charts

ROOT = pathlib.Path(__file__).resolve().parent.parent


def record(problem, version, milliseconds, role="ours", **more):
    """A record of 4 bytes and one operation for each element of "sum N"."""
    n = float(re.search(r"\d+", problem)[0])
    return {
        "day": "day15_reduction",
        "device": "NVIDIA X1",
        "driver": "1.0",
        "date": "2026-11-29T00:00:00Z",
        "problem": problem,
        "version": version,
        "role": role,
        "dtype": "float",
        "l2": "warm",
        "median_ms": milliseconds,
        "bytes": 4 * n,
        "flops": n,
        "limit_bytes_per_second": 1e12,
        "limit_flops_per_second": 1e13,
        "percent_of_limit": 4 * n / milliseconds * 1e3 / 1e12 * 100,
        "verified": True,
    } | more


SUMS = [
    record(f"sum {n}", version, n * factor, role)
    for n in (1024, 65536, 1048576)
    for version, role, factor in (("slow", "ours", 1e-6), ("fast", "ours", 5e-9), ("cub", "peer", 6e-9))
]


def tree(files):
    """A checkout with records: {"h200/day15_reduction": records}."""
    root = tempfile.TemporaryDirectory()
    path = pathlib.Path(root.name)
    (path / "README.md").write_text("<!-- days: h200 -->\n")
    (path / "day15_reduction").mkdir()
    (path / "day15_reduction" / "CMakeLists.txt").write_text('course_day(TITLE "Sums" BESIDE "sum 65536")')
    for name, records in files.items():
        file = path / "docs" / "measurements" / f"{name}.jsonl"
        file.parent.mkdir(parents=True, exist_ok=True)
        charts.record_files.write(file, records)
    return root, path


def parsed(text):
    """The HTML block of a section, as XML."""
    return ElementTree.fromstring(text[text.index('<div class="charts">') :])


def titles(element):
    return ["".join(title.itertext()) for title in element.iter("title")]


class Numbers(unittest.TestCase):
    def test_three_digits(self):
        for value, text in ((0.012345, "0.0123"), (1, "1.00"), (99.96, "100.0"), (4601.2, "4601"), (0, "0")):
            self.assertEqual(charts.three_digits(value), text)

    def test_times_have_the_units_of_the_tables(self):
        for milliseconds, text in ((0.00411, "4.11 µs"), (1.5, "1.50 ms"), (2500, "2.50 s"), (0.9999, "1000 µs")):
            self.assertEqual(charts.time_text(milliseconds), text)

    def test_sizes(self):
        for value, text in ((512, "512"), (1024, "1 Ki"), (1536, "1536"), (2**28, "256 Mi"), (1e6, "1 M"), (3000, "3000"), (50000, "50 k")):
            self.assertEqual(charts.size_text(value), text)

    def test_ticks_are_round_and_not_too_many(self):
        self.assertEqual(charts.log_ticks(900, 12000, 5), [1000, 2000, 5000, 10000])
        self.assertEqual(charts.log_ticks(1, 1e9, 5), [1, 1e2, 1e4, 1e6, 1e8])
        self.assertEqual(charts.log_ticks(2**16, 2**28, 5, binary=True), [2.0**18, 2.0**21, 2.0**24, 2.0**27])
        for low, high in ((1.01, 1.02), (3, 3.5), (0.001, 5e6)):
            self.assertLessEqual(len(charts.log_ticks(low, high, 6)), 6)


class Sizes(unittest.TestCase):
    def test_one_number(self):
        problems = ["sum 64", "sum 16", "minimum 64", "sum 1024"]
        self.assertEqual(charts.sizes(problems, "sum 64"), ([(16, "sum 16"), (64, "sum 64"), (1024, "sum 1024")], "sum N"))

    def test_a_cube_stays_a_cube(self):
        problems = ["matmul 64x64x64", "matmul 64x32x64", "matmul 8x8x8", "matmul 9x9x9"]
        points, name = charts.sizes(problems, "matmul 64x64x64")
        self.assertEqual((points[0], len(points), name), ((8, "matmul 8x8x8"), 3, "matmul NxNxN"))

    def test_fewer_sequences_that_are_longer(self):
        problems = ["attention half 4x16x4096x128", "attention half 2x16x8192x128", "attention half 1x16x16384x128"]
        points, name = charts.sizes(problems, problems[1])
        self.assertEqual(([n for n, _ in points], name), ([4096, 8192, 16384], "attention half ·x16xNx128"))

    def test_numbers_in_names_are_none(self):
        self.assertEqual(charts.numbers_in("cutoff_12 64x64 fp16 8"), [64, 64, 8])

    def test_units_of_memory_are_one_axis(self):
        points, name = charts.sizes(["chase 4 KB", "chase 1 GB", "chase 2 MB", "read 1 KB"], "chase 2 MB")
        self.assertEqual(([n for n, _ in points], name), ([4096, 2**21, 2**30], "chase N bytes"))
        self.assertEqual(charts.sizes(["read 1 GB, 8 warps", "read 1 GB, 4 warps"], "read 1 GB, 8 warps")[1], "read 1 GB, N warps")

    def test_no_sizes(self):
        self.assertEqual(charts.sizes(["sum 64", "minimum 8"], "sum 64"), ([], ""))


class Records(unittest.TestCase):
    def test_a_flushed_record_counts_only_without_a_warm_one(self):
        warm, flushed = record("sum 8", "a", 1), record("sum 8", "a", 9, l2="flushed")
        only = record("sum 8", "b", 9, l2="flushed")
        self.assertEqual(charts.cached([flushed, warm, only]), [warm, only])

    def test_the_telling_versions(self):
        times = {"first": 9, "same": 8.9, "gain": 4, "worse": 5, "small": 3.9, "fastest": 3.8}
        records = [record("sum 8", version, time) for version, time in times.items()]
        self.assertEqual(charts.telling(records, 3), ["first", "gain", "fastest"])

    def test_tensor_cores_have_no_percentage(self):
        self.assertIsNone(charts.percent_of_limit(record("sum 8", "a", 1, percent_of_limit=5.0, flops=1e12, limit_flops_per_second=1e13)))
        self.assertEqual(charts.percent_of_limit(record("sum 8", "a", 1, percent_of_limit=5.0)), 5.0)

    def test_the_nearer_limit_gives_the_unit(self):
        self.assertEqual(charts.Rate.of([record("sum 8", "a", 1)]).unit, "GB/s")
        self.assertEqual(charts.Rate.of([record("sum 8", "a", 1, flops=1e10)]).unit, "TFLOP/s")
        self.assertEqual(charts.Rate.of([record("sum 8", "a", 1, flops=1e8)]).unit, "GFLOP/s")
        self.assertEqual(charts.Rate.of([record("sum 8", "a", 1, flops=0, bytes=0)]).unit, "launches/s")

    def test_a_wrong_result_and_the_host_are_left_out(self):
        wrong = record("sum 8", "wrong", 1, verified=False)
        host = record("sum 8", "plain_loop_1", 1, device=charts.record_files.HOST)
        directory, root = tree({"h200/day15_reduction": SUMS + [wrong, host]})
        with directory:
            self.assertEqual({r["version"] for r in charts.load(root)["day15_reduction"]["h200"]}, {"slow", "fast", "cub"})


class Section(unittest.TestCase):
    def test_without_records_there_is_none(self):
        directory, root = tree({"h200/day15_reduction": SUMS})
        with directory:
            self.assertEqual(charts.section(root, "day16_scan"), "")

    def test_lines_and_bars_of_a_day(self):
        directory, root = tree({"h200/day15_reduction": SUMS})
        with directory:
            lines, bars = parsed(charts.section(root, "day15_reduction")).iter("figure")
        self.assertIn("fast, N = 64 Ki: 800 GB/s, 0.328 µs", titles(lines))
        self.assertIn("memory's limit, 1000 GB/s", titles(lines))
        self.assertEqual(len([t for t in titles(lines) if t.startswith("slow, N")]), 3)
        self.assertEqual([th.text for th in lines.iter("th")][:4], ["GB/s (time)", "N = 1 Ki", "N = 64 Ki", "N = 1 Mi"])
        self.assertEqual(bars.find("figcaption").text, "Percent of the limit: sum 65536")
        self.assertEqual(titles(bars)[1], "fast: 0.328 µs, 800 GB/s, 80.0 %")
        widths = [float(bar.get("width")) for bar in bars.iter("rect")]
        self.assertAlmostEqual(widths[1] / widths[2], 6 / 5, places=2)

    def test_higher_is_faster_and_right_is_larger(self):
        directory, root = tree({"h200/day15_reduction": SUMS})
        with directory:
            figure = next(parsed(charts.section(root, "day15_reduction")).iter("figure"))
        points = {
            "".join(path.itertext()): (float(path.get("data-x")), float(path.get("data-y")))
            for path in figure.find("svg").iter("path")
            if path.get("class") == "chart-point"
        }
        place = {title.split(":")[0]: at for title, at in points.items()}
        self.assertLess(place["fast, N = 64 Ki"][1], place["slow, N = 64 Ki"][1])
        self.assertLess(place["slow, N = 1 Ki"][0], place["slow, N = 1 Mi"][0])
        # Logarithmic: 1 Ki, 64 Ki, 1 Mi are 6 and 4 doublings apart.
        x = [place[f"slow, N = {n}"][0] for n in ("1 Ki", "64 Ki", "1 Mi")]
        self.assertAlmostEqual((x[1] - x[0]) / (x[2] - x[1]), 6 / 4, places=2)

    def test_without_percentages_the_bars_are_rates(self):
        directory, root = tree({"h200/day15_reduction": [r | {"percent_of_limit": None} for r in SUMS]})
        with directory:
            lines, bars = parsed(charts.section(root, "day15_reduction")).iter("figure")
        self.assertEqual(bars.find("figcaption").text, "GB/s: sum 65536")
        self.assertFalse([t for t in titles(lines) if "limit" in t])

    def test_a_latency_is_a_chart_of_its_own(self):
        figures = [r | {"figures": [["us per call", r["median_ms"] * 2]]} for r in SUMS]
        directory, root = tree({"h200/day15_reduction": figures})
        with directory:
            text = charts.section(root, "day15_reduction")
        self.assertIn("of a latency, lower ones are", text)
        first = next(parsed(text).iter("figure"))
        self.assertEqual(first.find("figcaption").text, "Latency over size")
        self.assertIn("slow, N = 1 Mi: 2.10 µs per call, 1.05 ms", titles(first))

    def test_gpus_side_by_side(self):
        other = [r | {"device": "NVIDIA X2", "median_ms": 2 * r["median_ms"]} for r in SUMS if r["version"] != "slow"]
        directory, root = tree({"h200/day15_reduction": SUMS, "a100/day15_reduction": other})
        with directory:
            text = charts.section(root, "day15_reduction")
            pages = charts.gpus(root)
        self.assertIn("Charts of NVIDIA X1", text)
        _, _, both = parsed(text).iter("figure")
        self.assertEqual(
            titles(both),
            [
                f"{version} on NVIDIA {device}: {rate} GB/s, {time} µs"
                for version, device, rate, time in (
                    ("fast", "X2", 400, "0.655"),
                    ("fast", "X1", 800, "0.328"),
                    ("cub", "X2", 333, "0.786"),
                    ("cub", "X1", 667, "0.393"),
                )
            ],
        )
        self.assertEqual(sorted(pages), ["gpus/x1", "gpus/x2"])
        self.assertIn("| [15 Sums](../docs/measured/day15_reduction.md) | sum 65536 | `fast` |", pages["gpus/x1"])
        self.assertIn("1.20× cub", pages["gpus/x1"])


class EveryDay(unittest.TestCase):
    def test_blocks_are_well_formed_and_nothing_lies_outside(self):
        for day in sorted(charts.load(ROOT)):
            with self.subTest(day=day):
                text = charts.section(ROOT, day)
                block = text[text.index('<div class="charts">') :].rstrip("\n")
                self.assertNotIn("\n\n", block)  # an empty line would end the block in Markdown
                for figure in parsed(text).iter("figure"):
                    self.check(figure)

    def check(self, figure):
        svg = figure.find("svg")
        self.assertEqual(svg.get("role"), "img")
        self.assertTrue(svg.get("aria-label"))
        _, _, width, height = map(float, svg.get("viewBox").split())
        boxes = []
        for label in svg.iter("text"):
            x, y, length = float(label.get("x")), float(label.get("y")), len(label.text) * 6.0
            left = {"start": x, "middle": x - length / 2, "end": x - length}[label.get("text-anchor")]
            self.assertGreaterEqual(left, -2, label.text)
            self.assertLessEqual(left + length, width + 4, label.text)
            self.assertLessEqual(y, height, label.text)
            boxes.append((left, y, length, label.text))
            self.assertTrue(len(label.text) > 20 or not label.text.endswith("…"), label.text)
        for i, (left, y, length, text) in enumerate(boxes):
            for other_left, other_y, other_length, other in boxes[:i]:
                apart = left >= other_left + other_length or other_left >= left + length or abs(y - other_y) >= 9
                self.assertTrue(apart, f"{text} lies on {other}")
        for path in svg.iter("path"):
            if path.get("data-x"):
                self.assertTrue(0 <= float(path.get("data-x")) <= width and 0 <= float(path.get("data-y")) <= height)
        rows = [[cell.text for cell in row] for row in figure.iter("tr")]
        self.assertGreater(len(rows), 1)
        self.assertEqual({len(row) for row in rows}, {len(rows[0])})

    def test_figures_are_those_of_the_records(self):
        text = charts.section(ROOT, "day15_reduction")
        lines = (ROOT / "docs" / "measurements" / "h200" / "day15_reduction.jsonl").read_text().splitlines()
        for one in map(json.loads, lines[1:]):
            if (one["problem"], one["version"], one["l2"]) == ("sum 268435456", "single_pass", "warm"):
                time, rate = one["median_ms"] * 1e3, one["bytes"] / one["median_ms"] * 1e-6
                self.assertIn(f"single_pass, N = 256 Mi: {rate:.0f} GB/s, {time:.0f} µs", text)
                return
        self.fail("day 15 has no record of single_pass")

    def test_links_of_gpu_pages_lead_to_pages(self):
        pages = charts.gpus(ROOT)
        self.assertIn("gpus/h200", pages)
        for page in pages.values():
            links = re.findall(r"\]\(\.\./([^)]+)\)", page)
            self.assertTrue(links)
            for link in links:
                self.assertTrue((ROOT / link).exists(), link)


def sweep_of(count, **more):
    """Problems of 1,000 * 2^i elements, of which ours is (1 + i / 10) times as fast as the peer."""
    found = []
    for i in range(count):
        n = 1000 * 2 ** (i % 20) + i // 20
        found.append(record(f"sum {n}", "ours", 1.0, **more))
        found.append(record(f"sum {n}", "cub", 1 + i / 10, "peer", **more))
        found.append(record(f"sum {n}", "slower", 2 + i, "peer", **more))
    return found


class Sweeps(unittest.TestCase):
    def test_a_sweep_is_beside_the_fastest_peer(self):
        chart = charts.sweep_chart(sweep_of(45))
        self.assertEqual(chart.title, "ours beside cub: 45 random problems, NVIDIA X1")
        self.assertEqual(chart.heading, ["bytes that the problem moves at least", "problems", "mean", "lowest", "highest"])
        self.assertEqual([row[1] for row in chart.rows], ["22", "23"])
        self.assertEqual(chart.rows[0][3], "1.00 (sum 1000)")
        self.assertEqual(max(float(row[4]) for row in chart.rows), 5.4)
        self.assertIn("on 45 of 45 it is at least as fast", chart.note)
        self.assertEqual(chart.svg.count("chart-dot"), 45)
        self.assertEqual(chart.svg.count('class="chart-point"'), 2)

    def test_the_mean_is_geometric(self):
        self.assertAlmostEqual(charts.geometric_mean([0.5, 2.0]), 1.0)
        self.assertAlmostEqual(charts.geometric_mean([1.0, 4.0, 2.0]), 2.0)

    def test_groups_are_of_adjacent_sizes_and_leave_none_out(self):
        pairs = charts.beside(sweep_of(47))
        groups = charts.in_groups(pairs, lambda record: record["bytes"])
        self.assertEqual([len(group) for group in groups], [23, 24])
        flat = [ours["bytes"] for group in groups for ours, _ in group]
        self.assertEqual(flat, sorted(flat))
        self.assertEqual(len(charts.in_groups(pairs[:3], lambda record: record["bytes"])), 1)

    def test_the_note_says_how_many_problems_have_a_mean(self):
        for problems, said in ((7, "mean of 7. Above"), (45, "mean of 22 to 23. Above"), (40, "mean of 20. Above")):
            self.assertIn(said, charts.sweep_chart(sweep_of(problems)).note)
        self.assertIn("The table below has the means", charts.sweep_chart(sweep_of(7)).description)

    def test_problems_of_the_same_name_are_problems_of_their_own(self):
        for records in ([record("sum 8", "ours", 1.0), record("sum 8", "cub", 2.0, "peer"), record("sum 8", "cub2", 3.0, "peer"),
                         record("sum 8", "ours", 10.0), record("sum 8", "cub", 40.0, "peer"), record("sum 8", "cub2", 30.0, "peer")],
                        [record("sum 8", "cub", 2.0, "peer"), record("sum 8", "ours", 1.0), record("sum 8", "cub", 30.0, "peer"), record("sum 8", "ours", 10.0)]):
            self.assertEqual([(ours["median_ms"], other["median_ms"]) for ours, other in charts.beside(records)], [(1.0, 2.0), (10.0, 30.0)])
        records = [record("sum 8", "ours", 1.0), record("sum 8", "ours", 10.0), record("sum 8", "cub", 20.0, "peer"), record("sum 9", "cub", 1.0, "peer")]
        self.assertEqual(charts.beside(records), [])
        chart = charts.sweep_chart(sweep_of(20) + sweep_of(3))
        self.assertTrue(chart.title.startswith("ours beside cub: 23 random problems"))
        self.assertIn("A table by names has 3 fewer", chart.note)
        self.assertNotIn("by names", charts.sweep_chart(sweep_of(20)).note)

    def test_the_unit_of_an_amount_is_that_of_the_rounded_one(self):
        for value, text in ((1234567, "1.23 M"), (999700, "1 M"), (999400, "999 k"), (9999, "9999"), (9999.6, "10 k"), (12345, "12.3 k"), (999.6e9, "1 T"), (1, "1"), (0.5, "0.5")):
            self.assertEqual(charts.short_amount(value), text)

    def test_without_a_peer_the_limit_is_beside_it_and_without_both_there_is_no_chart(self):
        copies = [r | {"role": "limit", "version": "copy"} if r["role"] == "peer" else r for r in sweep_of(20) if r["version"] != "slower"]
        self.assertTrue(charts.sweep_chart(copies).title.startswith("ours beside copy"))
        self.assertIsNone(charts.sweep_chart([r for r in sweep_of(20) if r["role"] == "ours"]))
        self.assertIsNone(charts.sweep_chart([]))

    def test_types_are_lines_of_their_own(self):
        chart = charts.sweep_chart(sweep_of(20) + sweep_of(20, dtype="half"))
        self.assertEqual([entry[3] for entry in chart.legend], ["as fast as cub", "ours, float", "ours, half"])
        self.assertEqual(len(chart.rows), 2)

    def test_problems_of_equal_work_are_over_what_differs(self):
        records = [record(f"rows {2**i}x{2**(20 - i)}", "ours", 1.0, bytes=4 * 2**20) for i in range(20)]
        self.assertEqual(charts.axis_of(records)[0], "rows ·xN")
        self.assertEqual([charts.axis_of(records)[1](r) for r in records[:2]], [2.0**20, 2.0**19])
        self.assertEqual(charts.axis_of(records + [record("sum 9999999", "ours", 1.0)])[0], "bytes that the problem moves at least")

    def test_a_sweep_is_in_the_section_with_a_warm_cache_and_verified(self):
        more = [r | {"l2": "flushed", "median_ms": 99.0} for r in sweep_of(20)] + [r | {"verified": False, "problem": "sum 77"} for r in sweep_of(1)]
        root, path = tree({"h200/day15_reduction": SUMS, "h100/day15_reduction_sweep": sweep_of(20) + more})
        with root:
            section = charts.section(path, "day15_reduction")
            self.assertEqual(section.count('<figure class="chart">'), 3)
            self.assertIn("ours beside cub: 20 random problems", section)
            self.assertNotIn("sum 77", section)
            self.assertNotIn("\n\n<", section.split('<div class="charts">')[1])

    def test_every_sweep_of_the_tree_has_a_chart(self):
        found = 0
        for path in sorted(ROOT.glob("docs/measurements/*/*_sweep.jsonl")):
            for records in charts.load_sweeps(ROOT, path.stem.removesuffix("_sweep")).values():
                chart = charts.sweep_chart(records)
                ElementTree.fromstring(charts.figure(chart).replace("<br>", ""))
                self.assertEqual(sum(int(row[1]) for row in chart.rows), chart.svg.count("chart-dot"))
                self.assertEqual(chart.svg.count("chart-dot"), sum(r["role"] == "ours" for r in records))
                for y in re.findall(r'data-y="([-\d.]+)"', chart.svg):
                    self.assertTrue(0 < float(y) < chart.height, path)
                found += 1
        self.assertGreaterEqual(found, 6)

    def test_the_counts_are_those_of_the_README(self):
        text = (ROOT / "day21_softmax_rows/README.md").read_text()
        said = re.search(r"at least as fast on (\d+) and \d+", text)[1]
        (records,) = charts.load_sweeps(ROOT, "day21_softmax_rows").values()
        self.assertIn(f"on {said} of 200 it is at least as fast", charts.sweep_chart(records).note)


if __name__ == "__main__":
    unittest.main()
