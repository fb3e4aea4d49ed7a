// What the terminal and the page show of an inspection: lines in order of cost, the text of
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

// How many blocks of the grid there are for each block that was watched: 1, unless it was sampled.
double blocks_each(const KernelInspection& kernel);
// Of all blocks, so that versions compare: "128", or of a sampled grid, as the watched blocks
// suggest, "~4096".
std::string requests_text(const AccessLine& access, double blocks_each);

// The line with the most to gain first: the most beyond its ideal, a wavefront counted as 128 bytes
// and a sector as 32. Of lines with as much to gain the one that moves the most; so are the
// accesses of each.
std::vector<InspectedLine> costliest_first(const KernelInspection& kernel);

// How far the transactions are from the ideal.
enum class Grade { kIdeal, kFair, kPoor };
Grade grade(const AccessLine& line);

double transactions_per_request(const AccessLine& line);
double ideal_per_request(const AccessLine& line);
double lanes_per_request(const AccessLine& line);
// Global memory: of the bytes that were moved, those that a lane wanted.
double share_of_bytes_used(const AccessLine& line);

// "shared load of 4 bytes"
std::string what(const AccessLine& line);
// The array's name, or what is known of it: "tile", "131 KB" for an allocation of that size,
// "matrices, 131 KB"
std::string array_of(const AccessLine& line);
// "wavefronts" or "sectors"
std::string_view unit(const AccessLine& line);
// Does each request load one element, which all of its lanes want?
bool is_broadcast(const AccessLine& line);

// "day03::chains [with int kChains = 8]" -> "chains<8>"
std::string short_name(std::string_view kernel);
// "8.39 MB", "160 B"
std::string bytes_text(double bytes);
// "64 blocks of 1024 threads", with "in 3 launches" and "sampled 256 of 4096 blocks" where it is so
std::string extent(const KernelInspection& kernel);

// A name and a value: "barriers per block", "16".
using Facts = std::vector<std::pair<std::string, std::string>>;

// Bytes moved against unique bytes, barriers, occupancy. `limits` of the multiprocessor that blocks
// are to share; none: not told.
Facts facts_of(const KernelInspection& kernel, const std::optional<MultiprocessorLimits>& limits);
// Arithmetic intensity, where the operations are known.
Facts facts_of(const InspectedVersion& version);

// "matmul_tiled.cu:93": the file without its directories.
std::string place(const SourceLine& source);
// "thread (3, 0, 0) of block (0, 0, 0)"
std::string thread_name(const std::array<unsigned, 3>& thread, const std::array<unsigned, 3>& block);

// Bytes that a version moves between its threads and memory: a sector is 32, a wavefront 128. Of a
// sampled grid those of all blocks, as the sampled ones suggest.
struct BytesMoved {
    double ideal = 0;
    double beyond_ideal = 0;

    double all() const { return ideal + beyond_ideal; }
    bool operator==(const BytesMoved&) const = default;
};
BytesMoved bytes_moved(const InspectedVersion& version, Space space);
// Of one line, and of the blocks that were watched.
std::uint64_t bytes_moved(const InspectedLine& line);
// Were only some of the blocks watched?
bool is_sampled(const InspectedVersion& version);

// Of all versions and kernels together.
std::size_t count_findings(const InspectionFile& file);

// Source files below a directory, read when they are asked for.
class Sources {
  public:
    explicit Sources(std::filesystem::path root) : root_(std::move(root)) {}

    // Of a file that cannot be read: none.
    const std::vector<std::string>& lines(const std::string& file);
    // Without the space around it; empty where there is no such line.
    std::string text(const SourceLine& source);

  private:
    std::filesystem::path root_;
    std::map<std::string, std::vector<std::string>> files_;
};

}  // namespace course::tool
