// The parts of an inspection that terminal and page show: lines in order of cost, the text of
// sources, facts about kernels.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/bench/inspection.hpp"
#include "common/bench/occupancy.hpp"

namespace course::tool {

// All accesses of one line of source.
struct InspectedLine {
    SourceLine source;
    std::vector<const AccessLine*> accesses;
    double blocks_each = 1;  // blocks_each(kernel)
};

// The number of blocks in the grid per inspected block: 1, unless the grid was sampled.
double blocks_each(const KernelInspection& kernel);
// The requests of all blocks, so that versions can be compared: "128", or "~4096" as an estimate
// for a sampled grid.
std::string requests_text(const AccessLine& access, double blocks_each);

// The line with the largest possible gain first, which is the largest excess over its ideal, with
// a wavefront counted as 128 bytes and a sector as 32. In a tie, the line that moves the most bytes
// comes first. The accesses of each line have the same order.
std::vector<InspectedLine> costliest_first(const KernelInspection& kernel);

// How far the transactions are from the ideal.
enum class Grade { kIdeal, kFair, kPoor };
Grade grade(const AccessLine& line);

double transactions_per_request(const AccessLine& line);
double ideal_per_request(const AccessLine& line);
double lanes_per_request(const AccessLine& line);
// For global memory: the share of the moved bytes that a lane has used.
double share_of_bytes_used(const AccessLine& line);

// "shared load of 4 bytes"
std::string what(const AccessLine& line);
// The array's name, or what is known about it: "tile", "131 KB" for an allocation of that size,
// "matrices, 131 KB"
std::string array_of(const AccessLine& line);
// "wavefronts" or "sectors"
std::string_view unit(const AccessLine& line);
// Does each request load one element that all of its lanes use?
bool is_broadcast(const AccessLine& line);

// "day03::chains [with int kChains = 8]" -> "chains<8>"
std::string short_name(std::string_view kernel);
// "8.39 MB", "160 B"
std::string bytes_text(double bytes);
// "64 blocks of 1024 threads", with "in 3 launches" and "sampled 256 of 4096 blocks" where that
// applies
std::string extent(const KernelInspection& kernel);

// A name and a value: "barriers per block", "16".
using Facts = std::vector<std::pair<std::string, std::string>>;

// Bytes moved against unique bytes, barriers, occupancy. `limits` are those of the multiprocessor
// that the blocks share; without them, no occupancy is shown.
Facts facts_of(const KernelInspection& kernel, const std::optional<MultiprocessorLimits>& limits);
// The arithmetic intensity, if the operations are known.
Facts facts_of(const InspectedVersion& version);

// "matmul_tiled.cu:93": the file without its directories.
std::string place(const SourceLine& source);
// "thread (3, 0, 0) of block (0, 0, 0)"
std::string thread_name(const std::array<unsigned, 3>& thread, const std::array<unsigned, 3>& block);

// The bytes that a version moves between its threads and memory: 32 for a sector, 128 for a
// wavefront. For a sampled grid, an estimate for all blocks.
struct BytesMoved {
    double ideal = 0;
    double beyond_ideal = 0;

    double all() const { return ideal + beyond_ideal; }
    bool operator==(const BytesMoved&) const = default;
};
BytesMoved bytes_moved(const InspectedVersion& version, Space space);
// The bytes of one line, for the inspected blocks only.
std::uint64_t bytes_moved(const InspectedLine& line);
// Were only some of the blocks inspected?
bool is_sampled(const InspectedVersion& version);

// The findings of all versions and kernels together.
std::size_t count_findings(const InspectionFile& file);

// Source files below a directory, read on demand.
class Sources {
  public:
    explicit Sources(std::filesystem::path root) : root_(std::move(root)) {}

    // Empty for a file that cannot be read.
    const std::vector<std::string>& lines(const std::string& file);
    // The line without surrounding whitespace; empty if there is no such line.
    std::string text(const SourceLine& source);

  private:
    std::filesystem::path root_;
    std::map<std::string, std::vector<std::string>> files_;
};

}  // namespace course::tool
