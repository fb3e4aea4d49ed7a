#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

#include "build.hpp"
#include "commands.hpp"
#include "common/bench/machine.hpp"
#include "errors.hpp"
#include "styles.hpp"
#include "subprocess.hpp"

namespace course::tool {

namespace {

// A program that measures tiles, and where the programs that choose among them look for its table.
struct Tuner {
    const char* program;
    const char* variable;  // of the environment: the file, if it is set
    const char* file;      // otherwise, in the build directory
};
constexpr Tuner kTuners[] = {
    // gemm_ladder/beyond/cost_table.hpp, day41_hopper_matmul/beyond/tile_table.hpp
    {"gemm_ladder_tune", "COURSE_TILE_COSTS", "tile_costs.jsonl"},
    {"day41_hopper_matmul_tune", "COURSE_WGMMA_TILE_COSTS", "wgmma_tile_costs.jsonl"},
};

}  // namespace

int tune_tiles(const Checkout& checkout) {
    if (is_cpu_stand_in()) {
        throw UsageError(
            "tune needs a GPU: this build runs every thread on the CPU, whose times say nothing about one");
    }
    for (const Tuner& tuner : kTuners) {
        build_target(checkout, tuner.program);
        const char* const named = std::getenv(tuner.variable);
        const std::filesystem::path file =
            named != nullptr && *named != '\0' ? named : checkout.build / tuner.file;
        const Command command{checkout.program(tuner.program), "--json", file};
        fmt::print(stderr, "{}\n", styled("$ " + shell_quoted(command), kQuiet, stderr));
        if (const int status = run(command); status != 0) return status;
    }
    return 0;
}

}  // namespace course::tool
