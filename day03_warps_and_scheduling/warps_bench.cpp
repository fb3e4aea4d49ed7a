// Day 3's program: the ways to evaluate a polynomial, and the chains of multiply-adds. Then what an
// SM has, what the kernels take of it, and what warps and chains are worth against latency.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "common/bench/benchmark.hpp"
#include "common/bench/machine.hpp"
#include "common/bench/usual_case.hpp"
#include "common/check/data_pattern.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/random.hpp"
#include "warps.hpp"

namespace {

using course::DeviceBuffer;

std::vector<int> random_terms(std::size_t n) {
    course::Random random(3);
    std::vector<int> terms(n);
    for (int& count : terms)
        count = static_cast<int>(random.integer(1, day03::kCoefficients));
    return terms;
}

struct Polynomial {
    explicit Polynomial(std::size_t n)
        : x(course::make_data<float>(n, course::DataPattern::kSignedUniform, 1)),
          coefficients(
              course::make_data<float>(day03::kCoefficients, course::DataPattern::kSignedUniform, 2)),
          terms(random_terms(n)),
          x_device{std::span<const float>(x)},
          coefficients_device{std::span<const float>(coefficients)},
          terms_device{std::span<const int>(terms)},
          order_device{std::span<const int>(day03::longest_first(terms))},
          copy(n),
          y(n) {}

    day03::Points points() const { return {x_device.span(), terms_device.span(), order_device.span()}; }
    double steps() const {
        double sum = 0;
        for (const int count : terms)
            sum += count;
        return sum;
    }
    // Computed when the first version of a rule is verified.
    const day03::Expected& expected(day03::Rule rule) {
        day03::Expected& result = expected_[static_cast<std::size_t>(rule)];
        if (result.y.size() != x.size()) result = day03::evaluate_on_cpu(rule, x, terms, coefficients);
        return result;
    }

    std::vector<float> x;
    std::vector<float> coefficients;
    std::vector<int> terms;
    DeviceBuffer<float> x_device;
    DeviceBuffer<float> coefficients_device;
    DeviceBuffer<int> terms_device;
    DeviceBuffer<int> order_device;
    DeviceBuffer<float> copy;
    course::GuardedBuffer<float> y;

  private:
    day03::Expected expected_[3];
};

course::VerifyResult compare(Polynomial& data, day03::Rule rule) {
    const day03::Expected& expected = data.expected(rule);
    course::VerifyResult result =
        course::verify(data.y.to_host(), expected.y, {.terms = day03::kCoefficients}, expected.magnitude);
    result.damage = data.y.damage();
    return result;
}

course::Case polynomial_case(const course::Dims& size) {
    const std::size_t n = course::only_extent(size, "points");
    course::UsualCase<Polynomial> usual("polynomial " + std::to_string(n), "float",
                                        std::make_shared<Polynomial>(n));
    usual.also_spoil([](Polynomial& data) { data.y.spoil(); });
    usual.versions(
        day03::versions(), day03::Problem{n, usual.data->steps()},
        [](const day03::Divergence& version, Polynomial& data, cudaStream_t stream) {
            version.launcher(data.points(), data.coefficients_device.span(), data.y.span(), stream);
        },
        [](const day03::Divergence& version, Polynomial& data) { return compare(data, version.rule); });
    usual.limit_copy(&Polynomial::x_device, &Polynomial::copy);
    return usual.result;
}

// --- Chains --------------------------------------------------------------------------------------

constexpr int kWarpsPerSm = 4;  // one for each of the SM's four schedulers

struct ChainsData {
    explicit ChainsData(const day03::ChainsProblem& p)
        : problem(p), out(day03::chain_threads(p.warps_per_sm)) {}

    course::VerifyResult compare(int chains) const {
        std::vector<double> expected(out.size());
        for (std::size_t t = 0; t < expected.size(); ++t)
            expected[t] = day03::chains_on_cpu(chains, problem.multiply_adds, t);
        course::VerifyResult result = course::verify(out.to_host(), expected, {.factor = 0});
        result.damage = out.damage();
        return result;
    }

    day03::ChainsProblem problem;
    course::GuardedBuffer<float> out;
};

// As many multiply-adds per thread as points / 16, and not more than 2^20, up to which float is
// exact.
course::Case chains_case(const course::Dims& size) {
    const std::size_t n = course::only_extent(size, "points");
    const int multiply_adds = static_cast<int>(std::clamp<std::size_t>(n / 16 / 8 * 8, 8, 1 << 20));
    const day03::ChainsProblem problem{kWarpsPerSm, multiply_adds};
    course::UsualCase<ChainsData> usual(
        fmt::format("{} multiply-adds per thread, {} warps per SM", multiply_adds, kWarpsPerSm), "float",
        std::make_shared<ChainsData>(problem));
    usual.also_spoil([](ChainsData& data) { data.out.spoil(); });
    usual.versions(
        day03::chains_versions(), problem,
        [](const day03::Chains& version, ChainsData& data, cudaStream_t stream) {
            version.launcher(data.problem, data.out.span(), stream);
        },
        [](const day03::Chains& version, const ChainsData& data) { return data.compare(version.chains); });
    return usual.result;
}

// --- What an SM has, and what the kernels take ---------------------------------------------------

void print_occupancy() {
    const course::MultiprocessorLimits sm = course::multiprocessor_limits();
    fmt::print(
        "\nEach SM of this device: {} warps, {} blocks, {} registers, {} KB of shared memory\n"
        "  {:<20} {:>8} {:>10} {:>12}  {:>14} {:>11} {:>10}  {}\n",
        sm.warps, sm.blocks, sm.registers, sm.shared_bytes >> 10, "kernel", "threads", "registers",
        "shared bytes", "blocks by hand", "by runtime", "occupancy", "limited by");
    for (const day03::Residency& row : day03::residencies()) {
        const course::Occupancy occupied = course::occupancy(row.block, sm);
        fmt::print("  {:<20} {:>8} {:>10} {:>12}  {:>14} {:>11} {:>8.0f} %  {}\n", row.kernel,
                   row.block.threads, row.block.registers, row.block.shared_bytes, row.by_hand,
                   row.by_runtime, 100 * occupied.share, occupied.limit);
    }
}

// Multiply-adds per nanosecond and SM, for each number of warps and of chains.
void print_latency_hiding() {
    if (course::is_cpu_stand_in()) {
        fmt::print("\nOn a GPU there would be a table here: what warps and independent chains are worth.\n");
        return;
    }
    constexpr int kMultiplyAdds = 1 << 16;
    const course::MultiprocessorLimits sm = course::multiprocessor_limits();
    fmt::print("\nMultiply-adds per nanosecond and SM, {} per thread\n  {:<13}", kMultiplyAdds,
               "warps per SM");
    for (const day03::Chains& version : day03::chains_versions())
        fmt::print("  {:>9}", version.name);
    fmt::print("\n");
    for (const int warps : {1, 2, 4, 8, 16, 32, 64}) {
        if (warps > sm.warps) break;
        const std::size_t threads = day03::chain_threads(warps);
        DeviceBuffer<float> out(threads);
        fmt::print("  {:<13}", warps);
        for (const day03::Chains& version : day03::chains_versions()) {
            const course::Measurement time = course::measure_warm(version.name, [&](cudaStream_t stream) {
                version.launcher({warps, kMultiplyAdds}, out.span(), stream);
            });
            fmt::print("  {:>9.1f}", 32.0 * warps * kMultiplyAdds / (1e6 * time.ms.median));
        }
        fmt::print("\n");
    }
}

void print_what_an_sm_does() {
    print_occupancy();
    print_latency_hiding();
}

}  // namespace

int main(int argc, char** argv) {
    const course::Program program{
        .day = "day03_warps_and_scheduling",
        .title = "a polynomial of 256 terms at n points, and chains of multiply-adds",
        .default_size = {1 << 14},
        .bench_sizes = {{1 << 22}, {1 << 24}},
        .make_cases = {polynomial_case, chains_case},
        .finish = print_what_an_sm_does};
    return course::run_program(program, argc, argv);
}
