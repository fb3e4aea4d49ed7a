// k-means: its update alone; whole runs, each iteration of them against double, and against the
// CPU's k-means from the same start.
#include "k_means.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "blobs.hpp"
#include "common/check/data_pattern.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/check/verify.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/random.hpp"
#include "common/test/device_test.hpp"
#include "k_means_step.hpp"

namespace {

using course::DeviceBuffer;
using course::GuardedBuffer;
using course::Metric;
using course::refusal;
using day46::Clusters;
using day46::KMeansStep;
using day46::Progress;

using KMeansTest = course::DeviceTest;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

float largest_of(std::span<const float> numbers) {
    float largest = 0;
    for (const float x : numbers)
        largest = std::max(largest, std::abs(x));
    return largest;
}

// Every rounding of a mean but for the last one is far below a float's.
constexpr course::Bound kOneRounding{.factor = 0.5};

// --- The parts of an iteration -------------------------------------------------------------------

// What the update makes of an assignment.
std::vector<float> updated(std::span<const float> points, std::span<const float> centres, std::size_t d,
                           std::span<const std::uint32_t> assignment) {
    const std::size_t n = assignment.size();
    const std::size_t k = centres.size() / d;
    const DeviceBuffer<float> points_device(points);
    const DeviceBuffer<float> centres_device(centres);
    DeviceBuffer<std::uint32_t> assignment_device(assignment);
    GuardedBuffer<float> moved(k * d);
    GuardedBuffer<std::uint64_t> scratch(day46::update_scratch_size({n, k, d}));
    day46::launch_update({.points = points_device.matrix(n, d),
                          .centres = centres_device.matrix(k, d),
                          .largest = largest_of(points),
                          .assignment = assignment_device.span(),
                          .moved = moved.matrix(k, d),
                          .scratch = scratch.span()},
                         nullptr);
    EXPECT_EQ(moved.damage() + scratch.damage(), "");
    return moved.to_host();
}

TEST_F(KMeansTest, UpdateMovesToMeans) {
    course::Random random(3);
    SCOPED_TRACE("course::Random seed 3");
    for (const auto pattern : course::kFinitePatterns) {
        const bool is_first = pattern == course::kFinitePatterns.front();
        for (const std::size_t d : {1, 2, 32, 33, 100}) {
            for (const std::size_t n : {1, 9, 1000}) {
                for (const std::size_t k : {1, 3, 300}) {
                    // Every shape once, and every pattern in shapes that add a few and many points.
                    if (!is_first && (d != 33 || n == 1 || k == 1)) continue;
                    const auto points = course::make_data<float>(n * d, pattern, 1);
                    const auto centres = course::make_data<float>(k * d, course::DataPattern::kNormal, 2);
                    std::vector<std::uint32_t> assignment(n);  // of 300 centres, the odd ones get no points
                    for (std::uint32_t& centre : assignment)
                        centre = random.below(static_cast<std::uint32_t>(k + 1) / 2) * 2;
                    const auto expected = day46::means_on_cpu(points, centres, d, assignment);
                    const auto result = course::verify(updated(points, centres, d, assignment),
                                                       expected.values, kOneRounding, expected.magnitudes, d);
                    ASSERT_TRUE(result.ok()) << course::name(pattern) << ", n = " << n << ", d = " << d
                                             << ", k = " << k << ": " << result.message();
                }
            }
        }
    }
}

// Whole numbers, whose sums are exact: then only the nearest float to the mean is right.
TEST_F(KMeansTest, UpdateOfWholeNumbersIsExact) {
    course::Random random(4);
    SCOPED_TRACE("course::Random seed 4");
    constexpr std::size_t kN = 5000;
    constexpr std::size_t kD = 3;
    std::vector<float> points(kN * kD);
    std::vector<std::uint32_t> assignment(kN);
    for (float& x : points)
        x = static_cast<float>(random.integer(-1'000'000, 1'000'000));
    for (std::uint32_t& centre : assignment)
        centre = random.below(5);
    const std::vector<float> centres(5 * kD, kNan);
    const auto expected = day46::means_on_cpu(points, centres, kD, assignment);
    EXPECT_EQ(updated(points, centres, kD, assignment),
              std::vector<float>(expected.values.begin(), expected.values.end()));
}

TEST_F(KMeansTest, ProgressOfAnIteration) {
    for (const std::size_t n : {0, 1, 31, 1000, 32768, 32769, 100000}) {
        auto squared_distances = course::make_data<float>(n, course::DataPattern::kNormal, 1);
        std::vector<std::uint32_t> before(n), assignment(n);
        Progress expected{};
        double magnitude = 0;
        for (std::size_t i = 0; i < n; ++i) {
            squared_distances[i] = std::abs(squared_distances[i]);
            assignment[i] = static_cast<std::uint32_t>(i % 7);
            before[i] = static_cast<std::uint32_t>(i % 3 == 0 ? i % 7 + 1 : i % 7);
            expected.inertia += static_cast<double>(squared_distances[i]);
            expected.changed += i % 3 == 0 ? 1 : 0;
        }
        magnitude = expected.inertia;
        DeviceBuffer<float> distances_device{std::span<const float>(squared_distances)};
        const DeviceBuffer<std::uint32_t> before_device{std::span<const std::uint32_t>(before)};
        DeviceBuffer<std::uint32_t> assignment_device{std::span<const std::uint32_t>(assignment)};
        const DeviceBuffer<float> points(n);
        GuardedBuffer<Progress> progress(day46::progress_parts(n));
        day46::launch_progress({.points = points.matrix(n, 1),
                                .before = before_device.span(),
                                .assignment = assignment_device.span(),
                                .squared_distances = distances_device.span(),
                                .progress = progress.span()},
                               nullptr);
        const Progress sum = day46::sum_of(progress.to_host());
        EXPECT_EQ(progress.damage(), "");
        EXPECT_EQ(sum.changed, expected.changed) << n;
        EXPECT_LE(std::abs(sum.inertia - expected.inertia), static_cast<double>(n) * 0x1p-52 * magnitude)
            << n;
    }
}

// --- Whole runs ----------------------------------------------------------------------------------

// What double says of centres and an assignment to them. Of each point x and its nearest centre c,
// with m = (|x| + |c|)^2 or what else bounds a distance's roundings: a distance is off by roundings
// * eps * m. And a centre that is a mean is off by 2^-24 |c|, so that a squared distance r^2
// changes by 2 r 2^-24 |c| + 2^-48 |c|^2.
struct Judgement {
    double inertia = 0;
    double rounding = 0;        // of the inertia: the distances'
    double moved = 0;           // of the inertia: the centres'
    double moved_squared = 0;   // the last term of it alone
    std::size_t within = 0;     // points assigned to another centre than the nearest, but within rounding
    std::size_t wrong = 0;      // and not
    std::size_t ambiguous = 0;  // points to which two centres are equally near, within rounding
};

Judgement judge(Metric metric, std::span<const float> points, std::span<const float> centres, std::size_t d,
                std::span<const std::uint32_t> assignment) {
    const std::size_t n = assignment.size();
    const std::size_t k = centres.size() / d;
    std::vector<float> columns(centres.size());
    for (std::size_t i = 0; i < centres.size(); ++i)
        columns[i % d * k + i / d] = centres[i];
    const auto distances = course::distances_on_cpu(metric, n, k, d, points, columns);
    const double roundings =
        course::Bound{.terms = d + 4, .growth = course::Growth::kSquareRoot}.roundings() *
        course::FloatTraits<float>::kEpsilon;
    std::vector<double> squared(k);  // the length of each centre
    for (std::size_t i = 0; i < centres.size(); ++i)
        squared[i / d] += static_cast<double>(centres[i]) * static_cast<double>(centres[i]);
    Judgement all;
    for (std::size_t point = 0; point < n; ++point) {
        const auto value = [&](std::size_t centre) { return distances.values[point * k + centre]; };
        const auto rounding = [&](std::size_t centre) {
            return roundings * distances.magnitudes[point * k + centre];
        };
        const auto shift = [&](std::size_t centre) {
            return std::pair(2 * std::sqrt(value(centre) * squared[centre]) * 0x1p-24,
                             squared[centre] * 0x1p-48);
        };
        std::size_t nearest = 0;
        for (std::size_t centre = 1; centre < k; ++centre)
            nearest = value(centre) < value(nearest) ? centre : nearest;
        const auto off = [&](std::size_t centre) {
            return rounding(centre) + shift(centre).first + shift(centre).second;
        };
        bool is_ambiguous = false;
        for (std::size_t centre = 0; centre < k; ++centre) {
            // Centres that are the same have the same distances, to the last bit.
            const bool is_other = value(centre) != value(nearest);
            is_ambiguous |= is_other && value(centre) - value(nearest) <= off(centre) + off(nearest);
        }
        all.ambiguous += is_ambiguous ? 1 : 0;
        const std::size_t own = assignment[point];
        if (own != nearest) {
            const bool is_within = own < k && value(own) > value(nearest) &&
                                   value(own) - value(nearest) <= rounding(own) + rounding(nearest);
            ++(is_within ? all.within : all.wrong);
        }
        if (own >= k) continue;
        all.inertia += value(own);
        all.rounding += rounding(own);
        all.moved += shift(own).first + shift(own).second;
        all.moved_squared += shift(own).second;
    }
    return all;
}

struct Outcome {
    Clusters<float> found;
    std::size_t within = 0;     // summed over the iterations
    std::size_t ambiguous = 0;  // the same
};

// An iteration from `centres` on.
struct Iteration {
    std::vector<std::uint32_t> assignment;
    Progress progress;
    std::vector<float> moved;
};

Iteration iterate(Metric metric, std::span<const float> points, std::span<const float> centres, std::size_t d,
                  std::span<const std::uint32_t> before) {
    const std::size_t n = before.size();
    const std::size_t k = centres.size() / d;
    const day46::Reduce& fused = course::find_version(day46::reduce_versions(), "fused");
    const day46::Reduce& reduce =
        fused.cannot_run({}).empty() ? fused : course::find_version(day46::reduce_versions(), "unfused");
    const DeviceBuffer<float> points_device(points);
    const DeviceBuffer<float> centres_device(centres);
    const DeviceBuffer<std::uint32_t> before_device(before);
    GuardedBuffer<std::uint32_t> assignment(n);
    GuardedBuffer<float> squared_distances(n);
    GuardedBuffer<Progress> progress(day46::progress_parts(n));
    GuardedBuffer<float> moved(k * d);
    GuardedBuffer<std::uint64_t> scratch(day46::step_scratch_size(reduce, {n, k, d, metric}));
    day46::launch_step(reduce,
                       {.points = points_device.matrix(n, d),
                        .centres = centres_device.matrix(k, d),
                        .largest = largest_of(points),
                        .metric = metric,
                        .before = before_device.span(),
                        .assignment = assignment.span(),
                        .squared_distances = squared_distances.span(),
                        .progress = progress.span(),
                        .moved = moved.matrix(k, d),
                        .scratch = scratch.span()},
                       nullptr);
    EXPECT_EQ(assignment.damage() + squared_distances.damage() + progress.damage() + moved.damage() +
                  scratch.damage(),
              "");
    return {assignment.to_host(), day46::sum_of(progress.to_host()), moved.to_host()};
}

// Each iteration of a run against double; the run, from the first to the last bit of its result, as
// the sequence of these iterations; and the whole of it against the CPU's, where no point is
// ambiguous.
Outcome expect_right(std::span<const float> points, std::span<const float> start, std::size_t d,
                     Metric metric = Metric::kSquaredL2, std::size_t most_iterations = 12) {
    Outcome run{.found = day46::k_means(points, start, d, {most_iterations, metric})};
    const Clusters<float>& found = run.found;
    const std::size_t n = points.size() / d;
    std::vector<float> centres(start.begin(), start.end());
    std::vector<std::uint32_t> before(n, 0xffffffff);
    std::vector<Judgement> judgements;
    for (std::size_t i = 0; i < found.inertia.size(); ++i) {
        SCOPED_TRACE("iteration " + std::to_string(i) + " of " + std::to_string(found.inertia.size()));
        const bool is_last = i + 1 == found.inertia.size();
        const Iteration now = iterate(metric, points, centres, d, before);
        std::size_t changed = 0;
        for (std::size_t point = 0; point < n; ++point)
            changed += now.assignment[point] != before[point] ? 1 : 0;
        EXPECT_EQ(now.progress.changed, changed);
        EXPECT_EQ(now.progress.inertia, found.inertia[i]);
        EXPECT_EQ(changed == 0, is_last && found.is_stable);

        const Judgement is = judge(metric, points, centres, d, now.assignment);
        EXPECT_EQ(is.wrong, 0u);
        EXPECT_LE(std::abs(now.progress.inertia - is.inertia), is.rounding);
        run.within += is.within;
        run.ambiguous += is.ambiguous;
        // In exact arithmetic the inertia cannot rise: the means are the best centres for the last
        // assignment, and the nearest centres the best assignment to the means. What can raise it
        // are the roundings of the distances, then and now, and of the means, which at the best
        // place count squared.
        if (i > 0) {
            EXPECT_LE(found.inertia[i],
                      found.inertia[i - 1] + judgements.back().rounding + is.rounding + is.moved_squared);
        }
        judgements.push_back(is);
        if (is_last) {
            EXPECT_EQ(centres, found.centres);
            EXPECT_EQ(now.assignment, found.assignment);
            break;
        }
        const auto means = day46::means_on_cpu(points, centres, d, now.assignment);
        const auto moved = course::verify(now.moved, means.values, kOneRounding, means.magnitudes, d);
        EXPECT_TRUE(moved.ok()) << moved.message();
        centres = now.moved;
        before = now.assignment;
    }
    if (run.ambiguous > 0) return run;

    const auto expected = day46::k_means_on_cpu(points, start, d, most_iterations);
    EXPECT_EQ(found.is_stable, expected.is_stable);
    EXPECT_EQ(found.assignment, expected.assignment);
    EXPECT_EQ(found.inertia.size(), expected.inertia.size());
    if (found.inertia.size() != expected.inertia.size()) return run;
    for (std::size_t i = 0; i < found.inertia.size(); ++i) {
        EXPECT_LE(std::abs(found.inertia[i] - expected.inertia[i]),
                  judgements[i].rounding + judgements[i].moved)
            << "iteration " << i;
    }
    // The same assignments make the same means: errors do not add up from iteration to iteration.
    const auto means = day46::means_on_cpu(points, found.centres, d, before);
    const auto same = course::verify(found.centres, expected.centres, kOneRounding, means.magnitudes, d);
    EXPECT_TRUE(same.ok()) << same.message();
    return run;
}

struct Shape {
    std::size_t n, d, k;
};

std::string text(const Shape& shape) {
    return "n = " + std::to_string(shape.n) + ", d = " + std::to_string(shape.d) +
           ", k = " + std::to_string(shape.k);
}

// Far apart, and a centre in each to begin with.
TEST_F(KMeansTest, SeparatedBlobs) {
    for (const Shape& s : {Shape{257, 1, 3}, {1000, 2, 6}, {513, 33, 7}, {777, 64, 10}, {300, 5, 1}}) {
        SCOPED_TRACE(text(s));
        const auto [centres, points] = day46::make_blobs(s.n, s.k, s.d, 0.05f, 17);
        std::vector<float> start = centres;
        for (float& x : start)
            x += 0.25f;
        const Outcome run = expect_right(points, start, s.d);
        EXPECT_EQ(run.ambiguous, 0u);
        EXPECT_TRUE(run.found.is_stable);
        EXPECT_EQ(run.found.inertia.size(), 2u);
        EXPECT_LT(run.found.inertia[1], run.found.inertia[0]);
    }
}

// The start is some of the points: two of them in one blob, none in another.
TEST_F(KMeansTest, BlobsThatTakeIterations) {
    std::size_t most = 0;
    for (const Shape& s :
         {Shape{257, 1, 5}, {1000, 2, 6}, {513, 33, 7}, {777, 64, 10}, {500, 3, 20}, {301, 2, 300}}) {
        SCOPED_TRACE(text(s));
        const auto points = day46::make_blobs(s.n, s.k, s.d, 1, 5).points;
        const Outcome run = expect_right(points, day46::evenly_chosen(points, s.d, s.k), s.d);
        EXPECT_EQ(run.ambiguous, 0u);
        most = std::max(most, run.found.inertia.size());
    }
    EXPECT_GE(most, 8u);  // iterations
}

TEST_F(KMeansTest, EachPointItsOwnCentre) {
    bool all_alone = false;
    for (const std::size_t d : {1, 2, 33}) {
        const auto points = day46::make_blobs(129, 10, d, 1, 6).points;
        const Outcome run = expect_right(points, points, d);
        if (run.ambiguous > 0) continue;
        EXPECT_EQ(run.found.inertia.size(), 2u);
        EXPECT_EQ(run.found.centres, points);
        all_alone = true;
    }
    EXPECT_TRUE(all_alone);  // where no two are too near to each other
}

// Of centres that are the same the first one gets the points. The other stays where it is.
TEST_F(KMeansTest, DuplicatesAndEmptyClusters) {
    constexpr std::size_t kD = 2;
    std::vector<float> points = day46::make_blobs(300, 4, kD, 1, 7).points;
    points.insert(points.end(), points.begin(), points.begin() + 100 * kD);
    std::vector<float> start(points.begin(), points.begin() + 3 * kD);
    start.insert(start.end(), points.begin(), points.begin() + kD);  // centre 3 is centre 0
    start.insert(start.end(), {1e6f, -1e6f});                        // and centre 4 is far away
    const Outcome run = expect_right(points, start, kD);
    EXPECT_EQ(run.ambiguous, 0u);
    EXPECT_EQ(std::ranges::count(run.found.assignment, 4u), 0);
    EXPECT_EQ(run.found.centres[4 * kD], 1e6f);
    EXPECT_EQ(run.found.centres[4 * kD + 1], -1e6f);

    // All points the same: one cluster, and no inertia to speak of.
    std::vector<float> same(50 * kD, 3);
    const Outcome one = expect_right(same, day46::evenly_chosen(same, kD, 3), kD);
    EXPECT_EQ(one.found.assignment, std::vector<std::uint32_t>(50, 0));
    EXPECT_EQ(one.found.inertia, (std::vector<double>{0, 0}));
}

// Far from the origin, |x|^2 + |c|^2 - 2 x c has no digits left for the distance.
TEST_F(KMeansTest, DifferencesFarFromTheOrigin) {
    constexpr std::size_t kD = 3;
    std::vector<float> points = day46::make_blobs(500, 4, kD, 0.5f, 8).points;
    for (float& x : points)
        x = 100 + x / 16;
    const auto start = day46::evenly_chosen(points, kD, 4);
    const Outcome run = expect_right(points, start, kD, Metric::kDifferences);
    EXPECT_EQ(run.ambiguous, 0u);
    EXPECT_GT(expect_right(points, start, kD, Metric::kSquaredL2).ambiguous, 0u);
}

TEST_F(KMeansTest, RandomShapes) {
    constexpr std::uint64_t kSeed = 9;
    SCOPED_TRACE("course::Random seed " + std::to_string(kSeed));
    course::Random random(kSeed);
    for (int i = 0; i < 8; ++i) {
        const Shape s{1 + random.below(400), 1 + random.below(40), 1 + random.below(30)};
        SCOPED_TRACE(text(s));
        const auto points = day46::make_blobs(s.n, 1 + random.below(12), s.d, 1, random.next()).points;
        expect_right(points, day46::evenly_chosen(points, s.d, s.k), s.d);
    }
}

// In whatever order the points come, the sums are the same.
TEST_F(KMeansTest, SameBitsInAnyOrder) {
    constexpr std::size_t kD = 7;
    constexpr std::size_t kN = 1500;
    const auto points = day46::make_blobs(kN, 9, kD, 2, 10).points;
    const auto start = day46::evenly_chosen(points, kD, 9);
    std::vector<float> reversed;
    for (std::size_t i = kN; i-- > 0;)
        reversed.insert(reversed.end(), &points[i * kD], &points[i * kD] + kD);
    const auto once = day46::k_means(points, start, kD);
    const auto again = day46::k_means(points, start, kD);
    auto other = day46::k_means(reversed, start, kD);
    EXPECT_GT(once.inertia.size(), 3u);
    EXPECT_EQ(once.centres, again.centres);
    EXPECT_EQ(once.inertia, again.inertia);
    EXPECT_EQ(once.centres, other.centres);
    std::ranges::reverse(other.assignment);
    EXPECT_EQ(once.assignment, other.assignment);
}

TEST_F(KMeansTest, NoPoints) {
    const std::vector<float> start = {1, 2, 3, 4};
    const auto found = day46::k_means({}, start, 2);
    EXPECT_EQ(found.centres, start);
    EXPECT_TRUE(found.assignment.empty());
    EXPECT_EQ(found.inertia, std::vector<double>{0});
    EXPECT_TRUE(found.is_stable);
}

TEST_F(KMeansTest, RefusesBadArguments) {
    std::vector<float> numbers(10, 1);
    const auto of = [&](std::span<const float> points, std::span<const float> start, std::size_t d,
                        const day46::KMeansOptions& options = {}) {
        return refusal([&] { day46::k_means(points, start, d, options); });
    };
    EXPECT_EQ(of(numbers, numbers, 3),
              "k_means: points has 10 numbers and d is 3; expected whole vectors of d, at least 1");
    EXPECT_EQ(of(numbers, numbers, 0),
              "k_means: points has 10 numbers and d is 0; expected whole vectors of d, at least 1");
    EXPECT_EQ(of(numbers, std::span(numbers).first(7), 5),
              "k_means: start has 7 numbers and d is 5; expected whole vectors of d, at least 1");
    EXPECT_EQ(of(numbers, {}, 5), "k_means: start has no centres; expected at least one");
    EXPECT_EQ(of(numbers, numbers, 5, {.most_iterations = 0}),
              "k_means: most_iterations is 0; expected at least 1");
    EXPECT_EQ(of(numbers, numbers, 5, {.metric = Metric::kCosine}),
              "k_means: metric is cosine; expected squared_l2 or differences, for a mean is nearest to its "
              "points by those alone");
    std::vector<float> bad = numbers;
    bad[7] = kNan;
    EXPECT_EQ(
        of(bad, numbers, 5),
        "k_means: points[7] is nan; expected a magnitude of at most 4.12e+18, so that squared distances "
        "are finite");
    bad[7] = -1e19f;
    EXPECT_EQ(of(numbers, bad, 5),
              "k_means: start[7] is -1e+19; expected a magnitude of at most 4.12e+18, so that squared "
              "distances are finite");
    EXPECT_EQ(refusal([&] { day46::k_means_on_cpu(numbers, {}, 5); }),
              "k_means: start has no centres; expected at least one");
}

TEST_F(KMeansTest, StepRefusesWhatDoesNotFit) {
    DeviceBuffer<float> floats(24);
    DeviceBuffer<std::uint32_t> indices(6);
    DeviceBuffer<std::uint64_t> scratch(32);
    DeviceBuffer<Progress> progress(day46::progress_parts(6));
    const KMeansStep right{.points = std::as_const(floats).matrix(6, 4),
                           .centres = std::as_const(floats).matrix(3, 4),
                           .largest = 1,
                           .before = std::as_const(indices).span(),
                           .assignment = indices.span(),
                           .squared_distances = floats.span().subspan(0, 6),
                           .progress = progress.span(),
                           .moved = floats.matrix(3, 4),
                           .scratch = scratch.span()};
    const auto of_update = [&](auto change) {
        KMeansStep step = right;
        change(step);
        return refusal([&] { day46::launch_update(step, nullptr); });
    };
    const auto of_progress = [&](auto change) {
        KMeansStep step = right;
        change(step);
        return refusal([&] { day46::launch_progress(step, nullptr); });
    };
    EXPECT_EQ(of_update([&](auto& step) { step.points = std::as_const(floats).matrix(6, 3); }),
              "k-means step: points is 6 x 3 and centres 3 x 4; expected as many columns");
    EXPECT_EQ(of_update([&](auto& step) { step.moved = floats.matrix(4, 4); }),
              "k-means step: moved is 4 x 4; expected 3 x 4, as centres");
    EXPECT_EQ(of_update([&](auto& step) {
                  step.centres = {std::as_const(floats).span(), 3, 4, 5};
              }),
              "k-means step: centres has a leading dimension of 5; expected 4, no gaps between rows");
    EXPECT_EQ(of_update([&](auto& step) { step.assignment = indices.span().subspan(0, 5); }),
              "k-means step: assignment has 5 elements; expected 6");
    EXPECT_EQ(of_update([&](auto& step) { step.scratch = scratch.span().subspan(0, 14); }),
              "k-means step: scratch has 14 elements; expected at least 15");
    EXPECT_EQ(of_update([&](auto& step) { step.largest = kNan; }),
              "k-means step: largest is nan; expected a finite number, at least 0");
    EXPECT_EQ(of_progress([&](auto& step) { step.before = std::as_const(indices).span().subspan(0, 5); }),
              "k-means step: before has 5 elements; expected 6");
    EXPECT_EQ(of_progress([&](auto& step) { step.squared_distances = floats.span(); }),
              "k-means step: squared_distances has 24 elements; expected 6");
    EXPECT_EQ(of_progress([&](auto& step) { step.progress = progress.span().subspan(0, 1); }),
              "k-means step: progress has 1 elements; expected 8");
}

}  // namespace
