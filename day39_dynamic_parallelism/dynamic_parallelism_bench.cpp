// Day 39's program: every version verified and timed, on curves that need from 2 to 256 points, and
// on quadtrees of points that are spread evenly and of points that are not.
//
//     day39_dynamic_parallelism --size POINTS      and a 64th as many curves
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "common/bench/usual_case.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/check/require.hpp"
#include "common/device/device_buffer.hpp"
#include "dynamic_parallelism.hpp"
#include "shapes_data.hpp"

namespace {

using course::DeviceBuffer;
using day39::Curve;
using day39::Pattern;

constexpr std::uint64_t kSeed = 39;
constexpr float kTolerance = 1e-5f;
constexpr day39::Limits kLimits = {.capacity = 32, .max_depth = 12};

course::VerifyResult result_of(std::size_t compared, const std::string& wrong) {
    course::VerifyResult result;
    result.compared = compared;
    if (!wrong.empty()) {
        result.differing = 1;
        result.first = {{0, "the reference's", wrong, ""}};
    }
    return result;
}

struct CurveData {
    explicit CurveData(std::size_t n)
        : curves(day39::random_curves(n, kSeed)),
          device{std::span<const Curve>(curves)},
          counts(n),
          points(n * day39::kMostPoints) {}

    std::vector<Curve> curves;
    DeviceBuffer<Curve> device;
    course::GuardedBuffer<unsigned> counts;
    course::GuardedBuffer<float2> points;
};

course::Case curve_case(const course::Dims& size) {
    const std::size_t n = std::max<std::size_t>(course::only_extent(size, "points") / 64, 1);
    course::UsualCase<CurveData> usual("curves " + std::to_string(n), "float",
                                       std::make_shared<CurveData>(n));
    std::size_t points = 0;
    for (const Curve& c : usual.data->curves)
        points += day39::points_needed(c, kTolerance);
    usual.output(&CurveData::points, [](const CurveData& d, const std::vector<float2>& got) {
        course::VerifyResult result =
            result_of(got.size(), day39::what_is_wrong(d.curves, kTolerance, d.counts.to_host(), got));
        result.damage = d.counts.damage();
        return result;
    });
    usual.also_spoil([](CurveData& d) { d.counts.spoil(); });
    usual.versions(day39::curve_versions(), day39::CurveProblem{n, points},
                   [](const day39::CurveVersion& version, CurveData& d, cudaStream_t stream) {
                       version.launcher(d.device.span(), kTolerance, d.counts.span(), d.points.span(),
                                        stream);
                   });
    return usual.result;
}

struct TreeData {
    TreeData(std::size_t n, Pattern pattern)
        : points(day39::random_points(n, pattern, kSeed)),
          expected(day39::tree_on_cpu(points, kLimits)),
          device{std::span<const float2>(points)},
          copy(n),
          out(n),
          other(n),
          nodes(day39::most_nodes(n, kLimits)),
          header(1) {}

    std::vector<float2> points;
    day39::PlainTree expected;
    DeviceBuffer<float2> device, copy;
    course::GuardedBuffer<float2> out, other;
    course::GuardedBuffer<day39::Node> nodes;
    course::GuardedBuffer<day39::Header> header;
};

course::Case tree_case(const course::Dims& size, Pattern pattern) {
    const std::size_t n = course::only_extent(size, "points");
    course::UsualCase<TreeData> usual("quadtree " + std::to_string(n) + " points" +
                                          (pattern == Pattern::uniform ? "" : " " + name(pattern)),
                                      "float", std::make_shared<TreeData>(n, pattern));
    usual.output(&TreeData::out, [](const TreeData& d, const std::vector<float2>& got) {
        std::string wrong;
        try {
            wrong = difference(day39::read_tree(d.header.to_host()[0], d.nodes.to_host(), got), d.expected);
        } catch (const std::invalid_argument& error) {
            wrong = error.what();
        }
        course::VerifyResult result = result_of(got.size(), wrong);
        result.damage = d.other.damage() + d.nodes.damage() + d.header.damage();
        return result;
    });
    usual.also_spoil([](TreeData& d) {
        d.other.spoil();
        d.nodes.spoil();
        d.header.spoil();
    });
    usual.versions(
        day39::tree_versions(), n, [](const day39::TreeVersion& version, TreeData& d, cudaStream_t stream) {
            version.launcher(d.device.span(), kLimits,
                             {d.out.span(), d.other.span(), d.nodes.span(), d.header.span()}, stream);
        });
    usual.limit_copy(&TreeData::device, &TreeData::copy);
    return usual.result;
}

// --- Launches ------------------------------------------------------------------------------------

struct LaunchData {
    course::GuardedBuffer<unsigned> counter{1};
};

// At most 1,000, and fewer on a CPU that is to be done soon; once, not again with the larger of the
// bench's sizes. The counter counts all repeats, so a launch clears it first.
course::Case launch_case(const course::Dims& size) {
    const std::size_t points = course::only_extent(size, "points");
    if (points > std::size_t{1} << 20) return {};
    const std::size_t n = std::clamp<std::size_t>(points / 64, 1, 1000);
    course::UsualCase<LaunchData> usual("launches " + std::to_string(n), "uint32",
                                        std::make_shared<LaunchData>());
    usual.output(&LaunchData::counter, [n](const LaunchData&, const std::vector<unsigned>& got) {
        return result_of(1, got[0] == n ? "" : std::to_string(got[0]) + " of " + std::to_string(n));
    });
    usual.versions(day39::launch_versions(), n,
                   [n](const day39::LaunchVersion& version, LaunchData& d, cudaStream_t stream) {
                       CUDA_CHECK(cudaMemsetAsync(d.counter.data(), 0, sizeof(unsigned), stream));
                       version.launcher(n, d.counter.span(), stream);
                   });
    usual.result.derive_figures = [n](std::span<course::Record> records) {
        for (course::Record& record : records)
            if (record.measurement)
                record.figures.push_back(
                    {"us a launch", record.measurement->ms.median * 1e3 / static_cast<double>(n)});
    };
    return usual.result;
}

}  // namespace

int main(int argc, char** argv) {
    const auto tree = [](Pattern pattern) {
        return [pattern](const course::Dims& size) { return tree_case(size, pattern); };
    };
    const course::Program program{
        .day = "day39_dynamic_parallelism",
        .title = "n / 64 curves of 2 to 256 points each, and quadtrees of n points",
        .default_size = {1 << 14},
        .bench_sizes = {{1 << 20}, {10'000'000}},
        .make_cases = {tree(Pattern::uniform), tree(Pattern::clustered), curve_case, launch_case}};
    return course::run_program(program, argc, argv);
}
