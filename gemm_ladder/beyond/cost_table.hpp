// Tables of what tiles cost: the one that ships, and the one that `./course tune` writes for the
// machine that it runs on.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tiles.hpp"

namespace gemm {

// The costs of every tile, with aligned rows and without, on one GPU.
struct CostTable {
    std::string device;  // "NVIDIA H200"
    int capability = 0;  // 90: 9.0
    int clock_khz = 0;
    std::vector<TileCost> costs;
};

// The one that ships, tune/h200.inc.
const CostTable& shipped_costs();

// A table in JSON Lines: a line with device, capability and clock_khz, then one for each tile with
// aligned rows, and one without. Throws std::runtime_error that begins with the file and the line
// when a line is malformed, a tile unknown, a number of costs wrong, a cost not greater than 0, or
// a tile missing.
CostTable read_cost_table(const std::filesystem::path& file);
std::string to_json_lines(const CostTable& table);

// The table in `file` if there is one and it is of `device`; otherwise the one that ships. Throws
// as read_cost_table().
CostTable costs_for(const std::string& device, const std::filesystem::path& file);

// Where `./course tune` writes the table: $COURSE_TILE_COSTS, or tile_costs.jsonl in the build
// directory.
std::filesystem::path cost_table_file();

// The table for the current device: costs_for() its name and cost_table_file(), read once.
const CostTable& costs_of_current_gpu();

// choose() by a given table.
Choice choose(const Shape& shape, bool aligned, const Gpu& gpu, const CostTable& table);

}  // namespace gemm
