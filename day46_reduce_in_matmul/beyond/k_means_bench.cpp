// An iteration of k-means with every version of the assignment.
#include "k_means_bench.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "blobs.hpp"
#include "common/bench/machine.hpp"
#include "common/bench/report.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/check/verify.hpp"
#include "common/device/device_buffer.hpp"
#include "k_means.hpp"
#include "k_means_step.hpp"

namespace day46 {
namespace {

constexpr double kMostOnHost = 1e8;         // multiply-adds for which the host looks for nearest centres
constexpr std::size_t kIterations = 100;    // at most, of a whole run
constexpr std::size_t kFewIterations = 10;  // of a run too large for the host

course::Bound distance_bound(std::size_t d) {
    return {.terms = d + 4, .growth = course::Growth::kSquareRoot};
}

struct Data {
    explicit Data(const KMeansShape& s)
        : shape(s),
          points(make_blobs(s.n, s.k, s.d, 1, 1).points),
          start(evenly_chosen(points, s.d, s.k)),
          points_device(std::span<const float>(points)),
          start_device(std::span<const float>(start)),
          before(std::span<const std::uint32_t>(std::vector<std::uint32_t>(s.n))),
          assignment(s.n),
          squared_distances(s.n),
          progress(progress_parts(s.n)),
          moved(s.k * s.d) {
        for (const float x : points)
            largest = std::max(largest, std::abs(x));
    }

    // The first iteration, always from the start.
    KMeansStep step(course::DeviceBuffer<std::uint64_t>& scratch) {
        return {.points = std::as_const(points_device).matrix(shape.n, shape.d),
                .centres = std::as_const(start_device).matrix(shape.k, shape.d),
                .largest = largest,
                .metric = shape.metric,
                .before = std::as_const(before).span(),
                .assignment = assignment.span(),
                .squared_distances = squared_distances.span(),
                .progress = progress.span(),
                .moved = moved.matrix(shape.k, shape.d),
                .scratch = scratch.span()};
    }

    double multiply_adds() const {
        return static_cast<double>(shape.n) * static_cast<double>(shape.k) * static_cast<double>(shape.d);
    }

    // Points that the host looks for the nearest centre of: as many as it takes a moment for,
    // evenly spaced.
    std::vector<std::size_t> sample() const {
        const double of_each = multiply_adds() / static_cast<double>(shape.n);
        const auto size =
            std::clamp<std::size_t>(static_cast<std::size_t>(kMostOnHost / of_each), 1, shape.n);
        std::vector<std::size_t> chosen(size);
        for (std::size_t i = 0; i < size; ++i)
            chosen[i] = i * shape.n / size;
        return chosen;
    }

    // The squared distances must be those to the centres that are named; of the sampled points
    // those must be the nearest; the moved centres must be the means of the points that name them.
    course::VerifyResult verify() const {
        const std::vector<std::uint32_t> named = assignment.to_host();
        const std::vector<float> got = squared_distances.to_host();
        const auto own = distances_to_own_on_cpu(shape.metric, points, start, shape.d, named);
        course::VerifyResult result =
            course::verify(got, own.values, distance_bound(shape.d), own.magnitudes);
        if (!result.ok()) return result;

        const course::VerifyResult nearest = verify_nearest(got);
        if (!nearest.ok()) return nearest;
        const auto means = means_on_cpu(points, start, shape.d, named);
        const course::VerifyResult of_means =
            course::verify(moved.to_host(), means.values, {.factor = 0.5}, means.magnitudes, shape.d);
        if (!of_means.ok()) return of_means;
        const course::VerifyResult of_progress = verify_progress(named, got);
        if (!of_progress.ok()) return of_progress;
        result.damage = assignment.damage() + squared_distances.damage() + progress.damage() + moved.damage();
        return result;
    }

    course::VerifyResult verify_progress(const std::vector<std::uint32_t>& named,
                                         const std::vector<float>& got) const {
        const Progress sum = sum_of(progress.to_host());
        const double inertia = std::accumulate(got.begin(), got.end(), 0.0);
        const auto changed = shape.n - static_cast<std::size_t>(std::ranges::count(named, 0u));
        return course::verify(std::vector{sum.inertia, static_cast<double>(sum.changed)},
                              std::vector{inertia, static_cast<double>(changed)}, {.terms = shape.n},
                              std::vector{inertia, 0.0});
    }

    course::VerifyResult verify_nearest(const std::vector<float>& got) const {
        std::vector<float> columns(start.size());
        for (std::size_t i = 0; i < start.size(); ++i)
            columns[i % shape.d * shape.k + i / shape.d] = start[i];
        std::vector<float> rows, of_rows;
        const std::vector<std::size_t> chosen = sample();
        for (const std::size_t point : chosen) {
            const auto row = std::span(points).subspan(point * shape.d, shape.d);
            rows.insert(rows.end(), row.begin(), row.end());
            of_rows.push_back(got[point]);
        }
        const auto distances =
            course::distances_on_cpu(shape.metric, chosen.size(), shape.k, shape.d, rows, columns);
        const auto expected = reduce_on_cpu(Reduction::kMin, Along::kRows, chosen.size(), shape.k, distances);
        return course::verify(of_rows, expected.values, distance_bound(shape.d), expected.magnitudes);
    }

    // A run until no point is assigned anew, or for some iterations.
    std::string whole_run() const {
        const bool host_too = multiply_adds() <= kMostOnHost;
        const std::size_t most = host_too ? kIterations : kFewIterations;
        const Clusters<float> found = k_means(points, start, shape.d, {.most_iterations = most});
        std::string text = fmt::format("{} iterations{}, inertia {:.6g}\n", found.inertia.size(),
                                       found.is_stable ? " until no point was assigned anew" : "",
                                       fmt::join(found.inertia, ", "));
        if (!host_too) return text;
        const Clusters<double> expected = k_means_on_cpu(points, start, shape.d, most);
        std::size_t elsewhere = 0;
        for (std::size_t i = 0; i < shape.n; ++i)
            elsewhere += found.assignment[i] != expected.assignment[i] ? 1 : 0;
        return text + fmt::format(
                          "on the CPU, in double: {} iterations, inertia {:.6g}; {} of {} points elsewhere\n",
                          expected.inertia.size(), expected.inertia.back(), elsewhere, shape.n);
    }

    KMeansShape shape;
    std::vector<float> points, start;
    float largest = 0;
    course::DeviceBuffer<float> points_device, start_device;
    course::DeviceBuffer<std::uint32_t> before;  // all of centre 0
    course::GuardedBuffer<std::uint32_t> assignment;
    course::GuardedBuffer<float> squared_distances;
    course::GuardedBuffer<Progress> progress;
    course::GuardedBuffer<float> moved;
};

// The assignment's, and an addition for each number of a point, which is read once more; the
// centres are written.
course::Work work_of(const Reduce& reduce, const KMeansShape& s) {
    course::Work work = reduce.work({.m = s.n, .n = s.k, .d = s.d, .metric = s.metric});
    const auto numbers = static_cast<double>(s.n * s.d);
    const auto centres = static_cast<double>(s.k * s.d);
    work.bytes += sizeof(float) * (numbers + centres);
    work.written += sizeof(float) * centres;
    work.flops += numbers;
    return work;
}

}  // namespace

course::Case make_k_means_case(const course::Dims& dims) {
    if (dims.size() != 3) {
        throw std::invalid_argument("expected points x centres x numbers of each, for example 20000x100x64");
    }
    if (dims[0] < dims[1]) {
        throw std::invalid_argument(
            fmt::format("{} points and {} centres; expected at least as many points", dims[0], dims[1]));
    }
    const auto data = std::make_shared<Data>(KMeansShape{.n = dims[0], .k = dims[1], .d = dims[2]});
    course::Case result{.problem = fmt::format("k-means iteration {}", fmt::join(dims, "x")),
                        .dtype = "float"};
    result.spoil = [data] {
        data->assignment.spoil();
        data->squared_distances.spoil();
        data->progress.spoil();
        data->moved.spoil();
    };
    result.verify = [data] { return data->verify(); };
    result.comment = [data](std::span<const course::Record>) { return data->whole_run(); };
    for (const Reduce& version : reduce_versions()) {
        const std::size_t words = step_scratch_size(version, data->shape);
        result.contestants.push_back(
            {.name = version.name,
             .work = work_of(version, data->shape),
             .cannot_run = version.cannot_run({}),
             .figures =
                 [words] {
                     return course::Figures{{"scratch MB", static_cast<double>(words * 8) / 1e6}};
                 },
             .prepare =
                 [data, &version, words](course::Contestant& me) {
                     const auto scratch = std::make_shared<course::DeviceBuffer<std::uint64_t>>(words);
                     me.launch = [data, &version, scratch](cudaStream_t stream) {
                         launch_step(version, data->step(*scratch), stream);
                     };
                 }});
    }
    return result;
}

void write_clusters(const std::string& path) {
    constexpr std::size_t kPoints = 400;
    constexpr std::size_t kCentres = 6;
    constexpr std::size_t kD = 2;
    const std::vector<float> points = make_blobs(kPoints, kCentres, kD, 1.2f, 321).points;
    const std::vector<float> start(points.begin(), points.begin() + kCentres * kD);
    const auto pairs = [](std::span<const float> vectors) {
        nlohmann::ordered_json list;
        for (std::size_t i = 0; i < vectors.size(); i += kD)
            list.push_back({vectors[i], vectors[i + 1]});
        return list;
    };
    const Clusters<float> found = k_means(points, start, kD);
    nlohmann::ordered_json file{{"device", course::this_machine().device},
                                {"points", pairs(points)},
                                {"assignment", found.assignment},
                                {"inertia", found.inertia},
                                {"is_stable", found.is_stable}};
    // A run that stops earlier is the beginning of this one, to the last bit.
    for (std::size_t i = 1; i <= found.inertia.size(); ++i)
        file["centres"].push_back(pairs(k_means(points, start, kD, {.most_iterations = i}).centres));
    course::write_file(path, file.dump() + "\n");
}

}  // namespace day46
