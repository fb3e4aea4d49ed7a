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

int tune_tiles(const Checkout& checkout) {
    if (is_cpu_stand_in()) {
        throw UsageError(
            "tune needs a GPU: this build runs every thread on the CPU, whose times say nothing about one");
    }
    build_target(checkout, "gemm_ladder_tune");
    // Where the dispatcher looks for it (gemm_ladder/beyond/cost_table.hpp).
    const char* const named = std::getenv("COURSE_TILE_COSTS");
    const std::filesystem::path file =
        named != nullptr && *named != '\0' ? named : checkout.build / "tile_costs.jsonl";
    const Command command{checkout.program("gemm_ladder_tune"), "--json", file};
    fmt::print(stderr, "{}\n", styled("$ " + shell_quoted(command), kQuiet, stderr));
    return run(command);
}

}  // namespace course::tool
