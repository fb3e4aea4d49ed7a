#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "../commands.hpp"
#include "../errors.hpp"
#include "common/bench/occupancy.hpp"

namespace {

using course::BlockNeeds;
using course::MultiprocessorLimits;
using course::tool::occupancy_text;
using course::tool::OccupancyOptions;

std::vector<std::string> lines_of(const std::string& text) {
    std::istringstream stream(text);
    std::vector<std::string> lines;
    for (std::string line; std::getline(stream, line);)
        lines.push_back(line);
    return lines;
}

struct Case {
    OccupancyOptions options;
    MultiprocessorLimits limits;
    BlockNeeds needs() const {
        return {.threads = options.threads,
                .registers = options.registers.value_or(0),
                .shared_bytes = static_cast<std::size_t>(options.shared)};
    }
};

// Whole and other warps, blocks that do not fit, and each portion of registers and bytes with its
// neighbours.
std::vector<Case> cases() {
    std::vector<Case> result;
    for (const auto& [capability, limits] : course::known_capabilities()) {
        const auto most = static_cast<long long>(limits.shared_bytes_of_block);
        for (const int threads : {1, 32, 33, 96, 256, 544, 1000, 1024}) {
            for (const int registers : {0, 1, 32, 33, 40, 136, 255}) {
                for (const long long shared : {0LL, 1LL, 1024LL, 8193LL, 33000LL, most}) {
                    OccupancyOptions options{threads, registers, shared, capability};
                    if (registers == 0) options.registers.reset();
                    result.push_back({options, limits});
                }
            }
        }
    }
    return result;
}

TEST(OccupancyCommand, ShowsABlock) {
    EXPECT_EQ(occupancy_text({256, 40, 16384, "9.0"}), R"(Compute capability 9.0, blocks of 256 threads
  resource       a block takes  an SM has      blocks
  registers      10240          65536               6
  shared memory  17408 bytes    233472 bytes       13
  threads        8 warps        64 warps            8
  blocks         1              32                 32
6 blocks, 75 % occupancy: 48 of 64 warps
limited by registers

One change at a time
  threads        at most 192: 8 blocks, 75 %
                 at most 256: 6 blocks, as now
                 from 257: 5 blocks, 70 %
  registers      at most 32: 8 blocks, 100 %
                 at most 40: 6 blocks, as now
                 from 41: 5 blocks, 62 %
  shared bytes   fewer alone do not help
                 at most 37888: 6 blocks, as now
                 from 37889: 5 blocks, 62 %

Occupancy by registers of a thread
  registers   blocks  occupancy
    1 to  32       8    100 %   ################################
   33 to  40       6     75 %   ######################## <- 40
   41 to  48       5     62 %   ####################
   49 to  64       4     50 %   ################
   65 to  80       3     38 %   ############
   81 to 128       2     25 %   ########
  129 to 255       1     12 %   ####
)");
}

TEST(OccupancyCommand, NamesEachLimitAndABlockThatDoesNotFit) {
    const auto has = [](const OccupancyOptions& options, const char* line) {
        const std::string text = occupancy_text(options);
        EXPECT_NE(text.find(line), std::string::npos) << text;
    };
    has({1024, 32, 0, "9.0"}, "\n2 blocks, 100 % occupancy: 64 of 64 warps\nlimited by registers, threads\n");
    has({1, {}, 232448, "9.0"}, "\n1 block, 2 % occupancy: 1 of 64 warps\nlimited by shared memory\n");
    has({1024, 100, 0, "12.0"}, "\nno block fits, so a launch fails\nlimited by registers\n");
    has({256, {}, 0, "8.6"}, "\n  registers      not counted    65536             any\n");
}

TEST(OccupancyCommand, TheStepsAreWhereTheNumberOfBlocksChanges) {
    const std::regex step("  ([a-z ]{14}) (at most|from) ([0-9]+): ([0-9]+) block.*");
    std::size_t steps = 0;
    for (const Case& one : cases()) {
        const std::string text = occupancy_text(one.options);
        std::string quantity;
        for (const std::string& line : lines_of(text)) {
            std::smatch found;
            if (line.starts_with("  ") && line.size() > 14 && line[2] != ' ')
                quantity = line.substr(2, line.find("  ", 2) - 2);
            if (!std::regex_match(line, found, step)) continue;
            const auto blocks = [&](long long value) {
                BlockNeeds needs = one.needs();
                if (quantity == "threads") needs.threads = static_cast<int>(value);
                if (quantity == "registers") needs.registers = static_cast<int>(value);
                if (quantity == "shared bytes") needs.shared_bytes = static_cast<std::size_t>(value);
                return course::blocks_at_once(needs, one.limits);
            };
            const long long value = std::stoll(found[3]);
            const int shown = std::stoi(found[4]);
            ASSERT_EQ(blocks(value), shown) << text;
            const bool is_end = line.find("no more") != std::string::npos;
            if (found[2] == "from") {
                ASSERT_GT(blocks(value - 1), shown) << text;
            } else if (!is_end) {
                ASSERT_LT(blocks(value + 1), shown) << text;
            }
            ++steps;
        }
    }
    EXPECT_GT(steps, 20000u);
}

TEST(OccupancyCommand, TheDrawingCoversEachNumberOfRegisters) {
    const std::regex row("  +([0-9]+) to +([0-9]+) +([0-9]+) +([0-9]+) %( *)(#*)( <- ([0-9]+))?");
    for (const Case& one : cases()) {
        const std::string text = occupancy_text(one.options);
        int next = 1;
        int marked = 0;
        for (const std::string& line : lines_of(text)) {
            ASSERT_LE(line.size(), 72u) << line;
            std::smatch found;
            if (!std::regex_match(line, found, row)) continue;
            ASSERT_EQ(std::stoi(found[1]), next) << text;
            const int last = std::stoi(found[2]);
            for (; next <= last; ++next) {
                BlockNeeds needs = one.needs();
                needs.registers = next;
                const course::Occupancy occupied = course::occupancy(needs, one.limits);
                ASSERT_EQ(std::stoi(found[3]), occupied.blocks) << text;
                ASSERT_EQ(found[6].length(), std::lround(32 * occupied.share)) << text;
            }
            if (!found[8].matched) continue;
            ++marked;
            ASSERT_EQ(std::stoi(found[8]), one.options.registers);
            ASSERT_TRUE(std::stoi(found[1]) <= one.options.registers && one.options.registers <= last)
                << text;
        }
        ASSERT_EQ(next, 256) << text;
        ASSERT_EQ(marked, one.options.registers ? 1 : 0) << text;
    }
}

std::string complaint_about(const OccupancyOptions& options) {
    try {
        static_cast<void>(occupancy_text(options));
    } catch (const course::tool::UsageError& error) {
        return error.what();
    }
    return "none";
}

TEST(OccupancyCommand, RefusesABlockThatNoGpuRuns) {
    EXPECT_EQ(complaint_about({0, 32, 0, "9.0"}), "--threads 0: expected 1 to 1024 threads of a block");
    EXPECT_EQ(complaint_about({1025, 32, 0, "9.0"}), "--threads 1025: expected 1 to 1024 threads of a block");
    EXPECT_EQ(complaint_about({-32, 32, 0, "9.0"}), "--threads -32: expected 1 to 1024 threads of a block");
    EXPECT_EQ(complaint_about({32, 256, 0, "9.0"}),
              "--registers 256: expected 1 to 255 registers of a thread");
    EXPECT_EQ(complaint_about({32, 0, 0, "9.0"}), "--registers 0: expected 1 to 255 registers of a thread");
    EXPECT_EQ(complaint_about({32, 32, -1, "9.0"}),
              "--shared -1: expected 0 to 232448 bytes of a block, on compute capability 9.0");
    EXPECT_EQ(complaint_about({32, 32, 232449, "9.0"}),
              "--shared 232449: expected 0 to 232448 bytes of a block, on compute capability 9.0");
    EXPECT_EQ(complaint_about({32, 32, 232448, "9.0"}), "none");
    EXPECT_EQ(complaint_about({32, 32, 65537, "7.5"}),
              "--shared 65537: expected 0 to 65536 bytes of a block, on compute capability 7.5");
    EXPECT_EQ(
        complaint_about({32, 32, 0, "9.1"}),
        "--capability 9.1: expected one of 7.0, 7.5, 8.0, 8.6, 8.7, 8.9, 9.0, 10.0, 10.3, 11.0, 12.0, 12.1");
    EXPECT_EQ(complaint_about({32, 32, 0, ""}), "none");
}

// Nsight Compute's occupancy of the kernels that were measured on an H200. Their records have the
// registers of a thread, but not the block: some whole number of warps must explain the occupancy.
TEST(OccupancyCommand, TheFormulaExplainsTheCountersOfAnH200) {
    const auto& known = course::known_capabilities();
    const MultiprocessorLimits limits =
        std::ranges::find(known, std::string("9.0"), &course::CapabilityLimits::capability)->limits;
    std::size_t by_registers = 0;
    for (const auto& file :
         std::filesystem::directory_iterator(std::string(CHECKOUT) + "/docs/measurements/h200")) {
        if (!file.path().string().ends_with(".counters.jsonl")) continue;
        std::ifstream stream(file.path());
        for (std::string line; std::getline(stream, line);) {
            const auto record = nlohmann::json::parse(line);
            if (record.value("occupancy_limit", "") != "registers") continue;
            // The mean of launches with different blocks is no whole number of the 64 warps of an
            // SM.
            const double warps_of_sm = 0.64 * record.at("largest_occupancy").get<double>();
            if (record.at("launches") > 1 && std::abs(warps_of_sm - std::round(warps_of_sm)) > 0.01) continue;
            bool is_explained = false;
            for (int warps = 1; warps <= 32; ++warps) {
                const course::Occupancy occupied =
                    course::occupancy({.threads = 32 * warps, .registers = record.at("registers")}, limits);
                is_explained |=
                    occupied.limit.starts_with("registers") &&
                    std::abs(100 * occupied.share - record.at("largest_occupancy").get<double>()) < 0.01;
            }
            EXPECT_TRUE(is_explained) << file.path().filename() << ": " << line;
            ++by_registers;
        }
    }
    EXPECT_GT(by_registers, 100u);
}

}  // namespace
