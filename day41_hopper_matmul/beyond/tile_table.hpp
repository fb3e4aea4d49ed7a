// What the tiles that `fitted` chooses from cost on the GPU at hand: a table that `./course tune`
// writes, and that programs read when they first choose.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "common/tile/tile_choice.hpp"
#include "hopper_matmul.hpp"

namespace day41 {

// A tile, and the times that ship: those of an H100.
struct Candidate {
    Version version;
    course::Tiling tiling;
};
const std::vector<Candidate>& candidates();

// The candidate whose model predicts the least time.
const Candidate& fastest(std::span<const Candidate> candidates, const Shape& shape,
                         std::size_t multiprocessors);

// The name of the tile that `fitted` chooses on the current GPU.
std::string tile_on_current_gpu(const Shape& shape);

// The four times of a course::Tiling, in microseconds.
struct TileTimes {
    std::string tile;
    double launch = 0;
    double start = 0;  // Tiling::tile
    double step = 0;
    double load = 0;
};

struct TileTable {
    std::string device;
    std::vector<TileTimes> times;  // one for each candidate
};

struct TimeOfShape {
    Shape shape;
    double microseconds;
};

// The shapes to measure for a tiling: from one tile to several waves of them, with few steps along
// K and with many.
std::vector<Shape> shapes_to_measure(const course::Tiling& tiling, std::size_t multiprocessors);

// The times, none of them negative, by which the model of Tiling::time() is nearest to those
// measured: the sum of squared relative errors is the least. Throws std::invalid_argument when a
// time measured is not greater than 0.
course::Tiling fitted_to(course::Tiling tiling, std::span<const TimeOfShape> measured,
                         std::size_t multiprocessors);

// In JSON Lines: a line with the device, then one for each tile. Throws std::runtime_error that
// begins with the file and the line when a line is malformed, a tile unknown or missing, or a time
// negative.
TileTable read_tile_table(const std::filesystem::path& file);
std::string to_json_lines(const TileTable& table);

// The candidates with the times of the table in `file`, if there is one and it is of `device`;
// otherwise those that ship. Throws as read_tile_table().
std::vector<Candidate> candidates_for(const std::string& device, const std::filesystem::path& file);

// Where `./course tune` writes the table: $COURSE_WGMMA_TILE_COSTS, or wgmma_tile_costs.jsonl in
// the build directory.
std::filesystem::path tile_table_file();

}  // namespace day41
