// Fused attention by itself: every version verified and timed.
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "common/machine.hpp"
#include "fused_bench.hpp"

int main(int argc, char** argv) {
    const auto memory = std::make_shared<bool>(false);
    const course::Program program{
        .day = "day25_attention",
        .title = "fused attention",
        .default_size = {1, 2, 128, 64},
        .bench_sizes = day25::fused::fused_bench_sizes(),
        .make_cases = day25::fused::fused_cases(),
        .stand_in_limit = 1 << 15,
        .add_options =
            [memory](CLI::App& app, course::Program&) {
                app.add_flag("--memory", *memory, "show what memory it takes, up to 64 k tokens");
            },
        .finish =
            [memory] {
                if (*memory) std::cout << day25::fused::memory_table(course::is_cpu_stand_in() ? 512 : 65536);
            }};
    return course::run_program(program, argc, argv);
}
