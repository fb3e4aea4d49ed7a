// The file of ./course inspect --trace: for each kernel of each version its figures by line, and
// what one warp did, step by step. scripts/record_traces.py keeps such files in docs/traces, and
// site/kernels.py makes pages of them.
//
// JSON Lines, one object for each kernel:
//
//     {"format": "course trace 1", "day": ..., "version": ..., "problem": ..., "kernel": ...,
//      "blocks": ..., "inspected_blocks": ..., "threads": ..., "launches": ...,
//      "sources": {FILE: hash of its text},
//      "lines": [AccessLine without its worst request, and "array"],
//      "block": [x, y, z], "warp": W, "steps": all of the warp,
//      "places": [{"file", "line", "kind", of requests and bulk copies "bytes",
//                  and of requests "space", "array"}],
//      "recorded": [[index in places, mask of lanes, transactions, ideal, RUN...]],
//      "repeats": [[index in recorded, number of steps after it that repeat recorded ones]]}
//
// Without "repeats" all steps are recorded, or the first ones.
//
// RUN, three numbers: the first byte's offset in the array, the step to the next active lane, the
// number of lanes. "4096, 128, 32": 32 lanes, 128 bytes apart.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/bench/inspection.hpp"
#include "inspect_view.hpp"

namespace course::tool {

// FNV-1a, 64 bits, as 16 hexadecimal digits. It tells whether a source has changed.
std::string text_hash(std::string_view text);

// The offsets of active lanes, as runs.
std::vector<std::int64_t> runs_of(const std::vector<std::int64_t>& offsets);

// Kernels without a trace are left out.
std::string trace_text(const InspectionFile& file, Sources& sources);

}  // namespace course::tool
