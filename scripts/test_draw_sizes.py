#!/usr/bin/env python3
"""Tests of draw_sizes.py. Run: scripts/test_draw_sizes.py"""

import re
import unittest
import xml.etree.ElementTree as tree

import draw_sizes


def record(problem, version, ms, role="ours", **others):
    return {
        "problem": problem,
        "version": version,
        "role": role,
        "median_ms": ms,
        "flops": 2e9,
        "l2": "warm",
        "verified": True,
        "device": "a GPU",
        "date": "2026-11-30T10:00:00Z",
    } | others


PATTERN = r"argmin of dot (\d+)x\1x64"
RECORDS = [
    record("argmin of dot 512x512x64", "cublas_then_reduce", 1.0, "peer"),
    record("argmin of dot 512x512x64", "unfused", 2.0),
    record("argmin of dot 512x512x64", "fused", 0.5),
    record("argmin of dot 512x512x64", "fused", 9.0, l2="flushed"),
    record("argmin of dot 4096x4096x64", "cublas_then_reduce", 3.0, "peer"),
    record("argmin of dot 4096x4096x64", "fused", 4.0),
    record("argmin of dot 4096x4096x64", "unfused", 5.0),
    record("argmin of dot 512x1024x64", "fused", 1.0),  # not of the plot
    record("argmin of dot 1024x1024x64", "fused", 1.0, verified=False),
]


class DrawSizes(unittest.TestCase):
    def test_lines_have_warm_verified_records_of_the_pattern_and_peers_come_last(self):
        lines = draw_sizes.curves(RECORDS, PATTERN)
        self.assertEqual(list(lines), ["unfused", "fused", "cublas_then_reduce"])
        self.assertEqual({size: one["median_ms"] for size, one in lines["fused"].items()}, {512: 0.5, 4096: 4.0})

    def test_fusion_is_compared_with_the_fastest_that_writes_the_product(self):
        lines = draw_sizes.curves(RECORDS, PATTERN)
        self.assertEqual(draw_sizes.where_fusion_pays(lines), "512 2.00x (fused), 4096 0.75x (fused)")

    def test_a_rate_is_in_tflops(self):
        self.assertAlmostEqual(draw_sizes.rate(record("p", "v", 1.0)), 2.0)

    def test_the_figure_is_xml_with_a_line_for_each_version_and_both_themes(self):
        text = draw_sizes.figure(draw_sizes.curves(RECORDS, PATTERN), "a title", "N")
        tree.fromstring(text)
        self.assertEqual(text.count('class="line '), 3)
        self.assertIn("prefers-color-scheme: dark", text)
        for words in ("a title", "cublas then reduce", "4,096", "a GPU, 2026-11-30"):
            self.assertIn(words, text)

    def test_one_size_and_small_rates_can_be_drawn(self):
        one = [record("argmin of dot 512x512x64", "fused", 1e6)]
        tree.fromstring(draw_sizes.figure(draw_sizes.curves(one, PATTERN), "t", "N"))

    def test_labels_keep_their_distance(self):
        moved = sorted(draw_sizes.spread([100, 101, 102, 200], 15))
        self.assertTrue(all(after - before >= 15 for before, after in zip(moved, moved[1:])), moved)

    def test_grid_lines_are_round_and_few(self):
        for largest in (0.003, 0.9, 7, 42, 61, 600):
            step = draw_sizes.step_of(largest)
            self.assertLessEqual(largest / step, 8)
            self.assertGreaterEqual(largest / step, 1)

    def test_every_problem_of_the_benches_is_in_one_plot(self):
        problems = ["batched 128x64x64x64 NN", "batched 128x64x64x128 NN", "argmin of dot 64x128x128x64"]
        problems += ["causal_scores 64x1024x1024x16", "causal_scores 8x1024x1024x64"]
        problems += ["nearest_neighbours 1024x262144x1024, k = 128", "nearest_neighbours 1024x262144x64, k = 4096"]
        patterns = [pattern for plots in draw_sizes.PLOTS.values() for *_, pattern in plots]
        for problem in problems:
            self.assertEqual(sum(bool(re.fullmatch(p, problem)) for p in patterns), 1, problem)


if __name__ == "__main__":
    unittest.main()
