#!/usr/bin/env python3
"""Tests of draw_tiles.py. Run: scripts/test_draw_tiles.py"""

import unittest
import xml.etree.ElementTree as tree

import draw_tiles


def record(version, ms, n=4096, **others):
    return {
        "problem": f"sgemm {n}x{n}x{n}",
        "version": version,
        "role": "ours",
        "median_ms": ms,
        "flops": 2e9,
        "l2": "warm",
        "verified": True,
        "device": "a GPU",
        "date": "2026-11-30T10:00:00Z",
    } | others


RECORDS = [
    record("128x256x8_64x64_16x8_4", 1.0),
    record("128x256x8_64x64_16x8_2", 1.25),
    record("64x64x16_32x32_8x4_2", 2.0),
    record("64x64x16_16x32_4x4_3", 4.0),
    record("64x64x16_16x32_4x4_2", 0.1, verified=False),
    record("128x256x8_64x64_16x8_4", 0.1, l2="flushed"),
    record("128x256x8_64x64_16x8_4", 0.1, n=1024),
    record("14_dispatcher", 0.1),
]


class DrawTiles(unittest.TestCase):
    def setUp(self):
        self.sets = draw_tiles.sets_of(RECORDS)

    def test_sets_are_the_warm_verified_records_of_the_largest_square(self):
        self.assertEqual(len(self.sets), 4)
        self.assertEqual(self.sets[(128, 256, 8, 64, 64, 16, 8, 4)]["median_ms"], 1.0)

    def test_columns_are_in_the_order_of_their_values(self):
        threads = draw_tiles.columns(self.sets, dict(draw_tiles.STRIPS)["thread, TM x TN"])
        self.assertEqual({value: len(column) for value, column in threads.items()}, {(4, 4): 1, (8, 4): 1, (16, 8): 2})
        self.assertEqual(list(threads), [(4, 4), (8, 4), (16, 8)])

    def test_losses_compare_the_fastest_of_each_value_with_the_fastest_of_all(self):
        lines = draw_tiles.losses(self.sets)
        self.assertEqual(lines[2], "thread, TM x TN: 4x4 -75.0%, 8x4 -50.0%, 16x8 +0.0%")
        self.assertEqual(lines[4], "stages: 2 -20.0%, 3 -75.0%, 4 +0.0%")

    def test_the_figure_is_xml_with_every_set_in_every_strip_and_both_themes(self):
        text = draw_tiles.figure(self.sets)
        tree.fromstring(text)
        self.assertEqual(text.count('class="dot '), 4 * len(draw_tiles.STRIPS))
        self.assertEqual(text.count('class="best"'), 2 + 3 + 3 + 2 + 3)
        self.assertIn("prefers-color-scheme: dark", text)
        for words in ("fastest: 128x256x8, warp 64x64, thread 16x8, 4 stages", "a GPU, 2026-11-30", "4 sets"):
            self.assertIn(words, text)

    def test_without_records_of_tiles_there_is_nothing_to_draw(self):
        self.assertEqual(draw_tiles.sets_of([record("14_dispatcher", 1.0)]), {})


if __name__ == "__main__":
    unittest.main()
