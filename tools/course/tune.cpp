#include <fmt/format.h>

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
    const Command command{checkout.program("gemm_ladder_tune"), "--json",
                          checkout.build / "tile_costs.jsonl"};
    fmt::print(stderr, "{}\n", styled("$ " + shell_quoted(command), kQuiet, stderr));
    return run(command);
}

}  // namespace course::tool
