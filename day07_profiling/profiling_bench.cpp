// Day 7's program: each mystery, slow and repaired, verified and timed.
#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/bench/machine.hpp"
#include "common/bench/usual_case.hpp"
#include "profiling.hpp"
#include "trial.hpp"

namespace {

const std::vector<course::Dims>& bench_sizes() {
    static const std::vector<course::Dims> sizes = [] {
        std::vector<course::Dims> all;
        for (const day07::Version& version : day07::versions())
            all.push_back({version.launcher.bench_elements});
        std::sort(all.begin(), all.end());
        all.erase(std::unique(all.begin(), all.end()), all.end());
        return all;
    }();
    return sizes;
}

// On a GPU, each mystery is timed with one of the sizes, at which its cause decides. Any other size
// that is asked for is for all of them.
bool runs(const day07::Mystery& mystery, const course::Dims& size) {
    const bool is_of_one = std::find(bench_sizes().begin(), bench_sizes().end(), size) != bench_sizes().end();
    return !is_of_one || course::is_cpu_stand_in() || size[0] == mystery.bench_elements;
}

course::Case make_case(const day07::Version& slow, const day07::Version& repaired, std::size_t n) {
    const auto trial = std::make_shared<day07::Trial>(slow, n);
    course::UsualCase<day07::Trial> usual(slow.name + " " + std::to_string(n), "float", trial);
    usual.result.spoil = [trial] { trial->spoil(); };
    usual.result.verify = [trial] { return trial->verify(); };
    usual.versions(
        std::vector<day07::Version>{slow, repaired}, n,
        [](const auto& version, day07::Trial& data, cudaStream_t stream) { data.launch(version, stream); });
    return usual.result;
}

// A profiler replays each launch many times, and mystery7 has one for each row: it sees 16 rows.
constexpr std::size_t kProfiledRows = 16;

// Each asteroid of mystery5 has whole warps and so begins at a sector, as at the size that is
// timed. Otherwise an inspection would show unaligned accesses, which are not the cause.
std::size_t in_whole_warps(std::size_t elements) {
    constexpr std::size_t kWarp = 32;
    return elements < kWarp ? elements : elements / kWarp * kWarp;
}

course::Case make_case(const day07::Version& slow, const day07::Version& repaired, const course::Dims& size) {
    std::size_t n = slow.launcher.n_of(course::only_extent(size, "elements"));
    if (slow.name == "mystery5") n = in_whole_warps(n);
    if (!runs(slow.launcher, size)) return {};
    course::Case made = make_case(slow, repaired, n);
    if (slow.name == "mystery7" && n > kProfiledRows)
        made.profiled_instead = [&slow, &repaired] { return make_case(slow, repaired, kProfiledRows); };
    return made;
}

}  // namespace

int main(int argc, char** argv) {
    course::Program program{.day = "day07_profiling",
                            .title = "mysteries, slow and repaired; size: elements",
                            .default_size = {131072},
                            .bench_sizes = bench_sizes(),
                            .make_cases = {}};
    const auto all = day07::versions();
    for (std::size_t i = 0; i < all.size(); i += 2)
        program.make_cases.push_back(
            [&all, i](const course::Dims& size) { return make_case(all[i], all[i + 1], size); });
    return course::run_program(program, argc, argv);
}
