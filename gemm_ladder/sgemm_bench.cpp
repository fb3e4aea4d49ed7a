// The ladder's program: every step verified and timed beside cuBLAS.
//
//     gemm_ladder [--step N|all] [--m M --n N --k K] [--alpha A --beta B]
//     gemm_ladder --bench          all steps over squares from 128 to 8192; 4096, the table of the ladder, is last
//     gemm_ladder --sweep          200 random shapes, for the dispatcher (step 14) and cuBLAS
//     gemm_ladder --random 200 --seed 7   shapes of a distribution, for steps 14 and 16
//     gemm_ladder --sweep --listed   56 shapes instead: squares, tall, deep, odd ones
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "common/bench/draw.hpp"
#include "common/bench/machine.hpp"
#include "common/bench/plain_loop.hpp"
#include "common/bench/program.hpp"
#include "common/bench/random_products.hpp"
#include "common/check/check.hpp"
#include "common/check/data_pattern.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/device/device_buffer.hpp"
#include "scratch.hpp"
#include "sgemm.hpp"
#include "sgemm_device_reference.hpp"
#include "sgemm_peer.hpp"
#include "sgemm_plain_loop.hpp"

namespace {

using course::DataPattern;
using course::DeviceBuffer;

constexpr int kCublas = 0;
constexpr int kDispatcher = 14;
constexpr std::size_t kMostElements = std::size_t{1} << 36;  // of a matrix: 256 GB
constexpr double kMostOnHost = 1e9;  // multiply-adds; above, the device works out the reference

// The first three steps are so slow that, on large problems, they would take longer than all the
// others together.
constexpr int kLastSlowStep = 3;
constexpr std::size_t kLargestForSlowSteps = 4096;

// What the command line asks for.
struct Choice {
    std::vector<std::string> steps = {"all"};
    std::int64_t m = 0, n = 0, k = 0;  // 0: not given
    float alpha = 1;
    float beta = 0;
    bool listed = false;
};

struct Data {
    Data(const gemm::Shape& s, float alpha_of_gemm, float beta_of_gemm)
        : shape(s),
          alpha(alpha_of_gemm),
          beta(beta_of_gemm),
          a(course::make_data<float>(s.m * s.k, DataPattern::kSignedUniform, 1)),
          b(course::make_data<float>(s.k * s.n, DataPattern::kSignedUniform, 2)),
          c(beta == 0 ? std::vector<float>()
                      : course::make_data<float>(s.m * s.n, DataPattern::kSignedUniform, 3)),
          product(s.m * s.n),
          magnitude(s.m * s.n),
          c_device(s.m * s.n) {
        a_device = DeviceBuffer<float>(std::span<const float>(a));
        b_device = DeviceBuffer<float>(std::span<const float>(b));
        std::ranges::copy(c, product.begin());
        const double multiply_adds =
            static_cast<double>(s.m) * static_cast<double>(s.n) * static_cast<double>(s.k);
        if (multiply_adds <= kMostOnHost || course::is_cpu_stand_in()) {
            gemm::multiply_on_cpu(shape, alpha, a, b, beta, product, magnitude);
        } else {
            gemm::multiply_on_device(shape, alpha, std::as_const(a_device).span(),
                                     std::as_const(b_device).span(), beta, product, magnitude);
        }
    }

    gemm::Sgemm gemm() {
        return {.a = std::as_const(a_device).matrix(shape.m, shape.k),
                .b = std::as_const(b_device).matrix(shape.k, shape.n),
                .c = c_device.matrix(shape.m, shape.n),
                .alpha = alpha,
                .beta = beta};
    }

    // Of the last launch.
    course::VerifyResult verify() {
        course::VerifyResult verified = verify(c_device.to_host());
        verified.damage = c_device.damage();
        return verified;
    }

    course::VerifyResult verify(const std::vector<float>& got) const {
        return course::verify(
            got, product,
            // The narrow bound: with the wide one, 2 eps K |A| |B|, a missing product would pass at K = 4096.
            {.terms = shape.k + (beta == 0 ? 0 : 1), .growth = course::Growth::kSquareRoot}, magnitude,
            shape.n);
    }

    gemm::Shape shape;
    float alpha, beta;
    std::vector<float> a, b;
    std::vector<float> c;  // what C holds before; empty where it is not read
    std::vector<double> product, magnitude;
    DeviceBuffer<float> a_device, b_device;
    course::GuardedBuffer<float> c_device;
};

// The same with data that is made and verified on the device.
struct RandomData {
    explicit RandomData(const gemm::Shape& s) : shape(s), products({1, s.m, s.n, s.k}) {}

    gemm::Sgemm gemm() {
        return {.a = products.a(), .b = products.b(), .c = products.c(), .alpha = 1, .beta = 0};
    }

    gemm::Shape shape;
    course::RandomProducts<float> products;
};

void require(bool condition, const std::string& message) {
    if (!condition) throw std::invalid_argument(message);
}

// "11_split_k" is step 11, and so is "11a_split_k_alone", which prepares it.
int number_of(const std::string& name) {
    int number = -1;
    std::from_chars(name.data(), name.data() + name.size(), number);
    return number;
}

std::set<int> known_steps() {
    std::set<int> numbers = {kCublas};
    for (const auto& list : {gemm::steps(), gemm::beyond()}) {
        for (const gemm::Step& step : list)
            numbers.insert(number_of(step.name));
    }
    return numbers;
}

template <class Data>
course::Contestant cublas(const std::shared_ptr<Data>& data) {
    const std::string no_cublas = gemm::why_no_cublas();
    return {
        .name = "00_cublas",
        .role = course::Role::kPeer,
        .launch = no_cublas.empty() ? gemm::make_cublas(data->gemm()) : std::function<void(cudaStream_t)>(),
        .work = gemm::steps().front().work(data->shape),
        .cannot_run = no_cublas};
}

template <class Data>
course::Contestant contestant_of(const gemm::Step& step, const std::shared_ptr<Data>& data) {
    course::Contestant contestant{
        .name = step.name, .work = step.work(data->shape), .cannot_run = step.cannot_run(data->shape)};
    if (step.launcher.resources != nullptr) contestant.resources = step.launcher.resources;
    if (!contestant.cannot_run.empty()) return contestant;
    const auto scratch = std::make_shared<gemm::ScratchMemory>(step.launcher.scratch(data->shape));
    contestant.launch = [data, &step, scratch](cudaStream_t stream) {
        gemm::Sgemm gemm = data->gemm();
        gemm.scratch = scratch->view();
        step.launcher.launch(gemm, stream);
    };
    return contestant;
}

std::string problem_text(const Data& data) {
    std::string text = fmt::format("sgemm {}x{}x{}", data.shape.m, data.shape.n, data.shape.k);
    if (data.alpha != 1) text += fmt::format(", alpha {}", data.alpha);
    if (data.beta != 0) text += fmt::format(", beta {}", data.beta);
    return text;
}

// All of `steps`; with `in_short_time`, slow ones are left out of large problems.
course::Case make_case(const course::Dims& size, const std::set<int>& steps, float alpha, float beta,
                       bool in_short_time) {
    require(size.size() == 3, "expected m x n x k, for example 512x512x512");
    for (const auto& [rows, cols] : {std::pair(size[0], size[2]), {size[2], size[1]}, {size[0], size[1]}})
        require(cols <= kMostElements / rows,
                fmt::format("a matrix of {} x {}; expected at most {} elements", rows, cols, kMostElements));
    const auto data = std::make_shared<Data>(gemm::Shape{size[0], size[1], size[2]}, alpha, beta);

    course::Case result{.problem = problem_text(*data), .dtype = "float"};
    result.spoil = [data] { data->c_device.spoil(); };
    result.verify = [data] { return data->verify(); };
    if (steps.contains(kCublas)) result.contestants.push_back(cublas(data));
    for (const auto& list : {gemm::steps(), gemm::beyond()}) {
        for (const gemm::Step& step : list) {
            if (steps.contains(number_of(step.name))) result.contestants.push_back(contestant_of(step, data));
        }
    }

    for (course::Contestant& contestant : result.contestants) {
        if (beta != 0) contestant.work.bytes += contestant.work.written;  // C is read as well
        const int number = number_of(contestant.name);
        if (in_short_time && number != kCublas && number <= kLastSlowStep &&
            std::ranges::max(size) > kLargestForSlowSteps) {
            contestant.cannot_run =
                fmt::format("left out of --bench above {}, to save time; --size {} runs it",
                            kLargestForSlowSteps, fmt::join(size, "x"));
        }
        // Every launch changes what the next one reads, so the result that counts is that of one
        // more launch.
        if (beta != 0) {
            contestant.verify = [data, launch = contestant.launch] {
                data->c_device.copy_from(data->c);
                launch(nullptr);
                CUDA_CHECK(cudaDeviceSynchronize());
                return data->verify();
            };
        }
    }
    if (steps == known_steps() && alpha == 1 && beta == 0) {
        constexpr double kSecondsPerFlop = 5e-11;
        const course::Work work = gemm::steps().front().work(data->shape);
        std::ranges::move(course::plain_loops(
                              work, work.flops * kSecondsPerFlop,
                              [data] { return course::unwritten<float>(data->product.size()); },
                              [data](std::vector<float>& c, int threads) {
                                  gemm::multiply_plainly(data->shape, data->a, data->b, c, threads);
                              },
                              [data](const std::vector<float>& c) { return data->verify(c); }),
                          std::back_inserter(result.contestants));
    }
    return result;
}

// A random shape of --sweep.
course::Case make_random_case(const course::Dims& size, const std::set<int>& steps) {
    require(size.size() == 3, "expected m x n x k, for example 512x512x512");
    const auto data = std::make_shared<RandomData>(gemm::Shape{size[0], size[1], size[2]});
    course::Case result{.problem = fmt::format("sgemm {}", fmt::join(size, "x")), .dtype = "float"};
    result.spoil = [data] { data->products.spoil(); };
    result.verify = [data] { return data->products.verify(); };
    if (steps.contains(kCublas)) result.contestants.push_back(cublas(data));
    for (const auto& list : {gemm::steps(), gemm::beyond()}) {
        for (const gemm::Step& step : list) {
            if (steps.contains(number_of(step.name))) result.contestants.push_back(contestant_of(step, data));
        }
    }
    return result;
}

course::Distribution products(const std::string& name, const std::vector<std::string>& ours,
                              const std::set<int>& steps) {
    return {.name = name,
            .text = course::kProductsText,
            .most = std::size_t{1} << 38,
            .most_on_cpu = 1 << 22,
            .ours = ours,
            .draw = [steps](course::Draw& draw) -> course::RandomProblem {
                const auto [kind, size] = course::draw_product(draw);
                return {kind, size, [size = size, steps] { return make_random_case(size, steps); }};
            }};
}

// --- The program's own options -------------------------------------------------------------------

std::set<int> parse_steps(const std::vector<std::string>& texts) {
    const std::set<int> known = known_steps();
    std::set<int> wanted;
    for (const std::string& text : texts) {
        if (text == "all") {
            wanted = known;
            continue;
        }
        int number = -1;
        const char* const end = text.data() + text.size();
        const auto [rest, error] = std::from_chars(text.data(), end, number);
        require(error == std::errc() && rest == end && known.contains(number),
                fmt::format("--step {}: expected all, or numbers of {} (0 is cuBLAS)", text,
                            fmt::join(known, ", ")));
        wanted.insert(number);
    }
    return wanted;
}

// m x n x k: what is not given is as large as the first that is.
course::Dims dims_of(const Choice& choice) {
    const std::int64_t first = choice.m != 0 ? choice.m : choice.n != 0 ? choice.n : choice.k;
    course::Dims dims;
    for (const std::int64_t extent : {choice.m, choice.n, choice.k})
        dims.push_back(static_cast<std::size_t>(extent != 0 ? extent : first));
    return dims;
}

std::vector<course::Dims> listed_sizes() {
    std::vector<course::Dims> sizes;
    for (const std::size_t n : {256,  384,  512,  640,  768,  1000, 1024, 1280, 1536, 1792,
                                2048, 2500, 3000, 3072, 3584, 4096, 4097, 5000, 6144, 8192})
        sizes.push_back({n, n, n});
    const std::vector<course::Dims> others = {// tiny
                                              {1, 1, 1},
                                              {16, 16, 16},
                                              {32, 32, 32},
                                              {64, 64, 64},
                                              {100, 100, 100},
                                              {128, 128, 128},
                                              // tall and wide
                                              {16384, 128, 1024},
                                              {32768, 64, 512},
                                              {8192, 256, 4096},
                                              {10000, 100, 1000},
                                              {65536, 32, 256},
                                              {128, 16384, 1024},
                                              {64, 32768, 512},
                                              {256, 8192, 4096},
                                              {100, 10000, 1000},
                                              {32, 65536, 256},
                                              // a vector
                                              {1, 4096, 4096},
                                              {4096, 1, 4096},
                                              {8, 8192, 8192},
                                              // deep: few elements, long sums
                                              {64, 64, 65536},
                                              {128, 128, 32768},
                                              {256, 256, 16384},
                                              {512, 512, 8192},
                                              {100, 100, 100000},
                                              // shallow
                                              {4096, 4096, 16},
                                              {4096, 4096, 64},
                                              {8192, 8192, 128},
                                              // odd: no row is aligned, no tile is full
                                              {1023, 1025, 1027},
                                              {2047, 2049, 2051},
                                              {4095, 4095, 4095},
                                              {3001, 1000, 2003},
                                              {333, 777, 555},
                                              {4097, 129, 65},
                                              {1001, 4099, 77},
                                              // of language models
                                              {2048, 11008, 4096},
                                              {512, 12288, 3072}};
    sizes.insert(sizes.end(), others.begin(), others.end());
    return sizes;
}

void add_options(CLI::App& app, course::Program& program, Choice& choice) {
    app.add_option(
           "--step", choice.steps,
           "all, or numbers, with commas between: 0 is cuBLAS, 1 to 11 the ladder, 12 to 16 beyond; 9 runs "
           "09_warp_tiling and what prepares it (09a, 09b...)")
        ->delimiter(',')
        ->default_str("all; for --sweep 0,14")
        ->excludes(app.get_option("--only"));
    app.add_option("--m", choice.m, "rows of C and A")->default_str("as the first given");
    app.add_option("--n", choice.n, "columns of C and B")->default_str("as the first given");
    app.add_option("--k", choice.k, "columns of A, rows of B")->default_str("as the first given");
    app.add_option("--alpha", choice.alpha, "C = alpha A B + beta C")->capture_default_str();
    app.add_option("--beta", choice.beta, "with 0, C is not read")->capture_default_str();
    app.add_flag("--listed", choice.listed, "with --sweep: the listed shapes, not random ones");
    app.footer("Example: " + program.day + " --step 0,5 --m 1000 --n 3000 --k 500");
    app.callback([&] {
        const bool sweep = app.count("--sweep") != 0;
        const bool bench = app.count("--bench") != 0;
        for (const char* const option : {"--step", "--m", "--n", "--k", "--alpha", "--beta", "--listed"})
            require(app.count("--random") == 0 || app.count(option) == 0,
                    fmt::format("{}: expected without --random", option));
        for (const auto& [option, extent] :
             {std::pair("--m", choice.m), {"--n", choice.n}, {"--k", choice.k}}) {
            if (app.count(option) == 0) continue;
            require(!sweep && !bench && app.count("--size") == 0,
                    fmt::format("{}: expected without --size, --bench and --sweep", option));
            require(extent > 0, fmt::format("{} {}: expected a number > 0", option, extent));
            program.default_size = dims_of(choice);
        }
        for (const auto& [option, factor] : {std::pair("--alpha", choice.alpha), {"--beta", choice.beta}})
            require(std::isfinite(factor), fmt::format("{} {}: expected a finite number", option, factor));
        std::set<int> steps = parse_steps(choice.steps);
        if (sweep && app.count("--step") + app.count("--only") == 0) steps = {kCublas, kDispatcher};
        require(sweep || !choice.listed, "--listed: expected with --sweep");
        if (sweep && !choice.listed) {
            require(choice.alpha == 1 && choice.beta == 0,
                    "--alpha, --beta: random shapes are measured with 1 and 0; expected --listed for others");
            program.make_cases = {[=](const course::Dims& size) { return make_random_case(size, steps); }};
            return;
        }
        program.sweep_sizes = listed_sizes();
        program.sweep_repeats = {};
        program.make_cases = {[=, alpha = choice.alpha, beta = choice.beta](const course::Dims& size) {
            return make_case(size, steps, alpha, beta, bench);
        }};
    });
}

std::vector<course::Dims> bench_sizes() {
    std::vector<course::Dims> sizes;
    for (const std::size_t n : {128, 256, 384, 512, 768, 1024, 1536, 2048, 3000, 3072, 6144, 8192, 4096})
        sizes.push_back({n, n, n});
    return sizes;
}

}  // namespace

int main(int argc, char** argv) {
    Choice choice;
    const course::Program program{
        .day = "gemm_ladder",
        .title = "C = alpha A B + beta C, FP32, row-major; size: m x n x k",
        .default_size = {256, 256, 256},
        .bench_sizes = bench_sizes(),
        .sweep_sizes = course::random_matmuls(),
        .make_cases = {},  // known when the options are
        .sweep_repeats = course::kSweepRepeats,
        .distributions = {products("fp32", {"14_dispatcher"}, {kCublas, kDispatcher}),
                          products("fp32 accuracy on tensor cores", {"16_tf32x3_wgmma", "15_tf32x3"},
                                   {kCublas, 15, 16})},
        .add_options = [&choice](CLI::App& app, course::Program& own) { add_options(app, own, choice); }};
    return course::run_program(program, argc, argv);
}
