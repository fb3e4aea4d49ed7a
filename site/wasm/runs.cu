// The kernels that a page can run: each with a size and a grid or block of the reader's choice, and
// verified. The kernels are those of the lessons, in their own files.
#include <emscripten.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string_view>
#include <vector>

#include "day01_vector_add/vector_add.cuh"
#include "day05_matmul_tiled/matmul_tiled.cuh"
#include "day06_transpose/transpose.cuh"
#include "day15_reduction/reduction.cuh"
#include "page_host.hpp"

namespace {

constexpr float kRounding = 0x1p-24F;  // of one operation, relative

// An array of device memory: NaN until it is written, between guards, of which the one behind it
// has at least `guard` values.
class Array {
  public:
    explicit Array(std::size_t size, std::size_t guard = kGuard)
        : size_(size),
          guard_(std::max(guard, kGuard)),
          memory_(static_cast<float*>(std::aligned_alloc(256, (kGuard + size + guard_ + 63) / 64 * 256))) {
        if (memory_ == nullptr) std::abort();
        std::fill(memory_, memory_ + kGuard, kGuardValue);
        std::memset(data(), 0xff, size * sizeof(float));
        std::fill(data() + size, data() + size + guard_, kGuardValue);
    }
    Array(const Array&) = delete;
    Array& operator=(const Array&) = delete;
    ~Array() { std::free(memory_); }

    float* data() const { return memory_ + kGuard; }
    std::size_t size() const { return size_; }
    bool guards_are_intact() const {
        const auto intact = [](float value) { return value == kGuardValue; };
        return std::all_of(memory_, memory_ + kGuard, intact) &&
               std::all_of(data() + size_, data() + size_ + guard_, intact);
    }
    void randomise(std::mt19937& random) {
        std::uniform_real_distribution<float> value(-1.0F, 1.0F);
        std::generate(data(), data() + size_, [&] { return value(random); });
    }

  private:
    static constexpr std::size_t kGuard = 64;
    static constexpr float kGuardValue = 12345.0F;
    std::size_t size_;
    std::size_t guard_;
    float* memory_;
};

struct Answer {
    std::size_t results = 0;
    std::size_t wrong = 0;
    std::size_t first_wrong = 0;
    double got = 0;
    double expected = 0;
    bool outside = false;  // the kernel wrote there

    void compare(float result, double reference, double tolerance) {
        if (!(std::abs(result - reference) <= tolerance) && wrong++ == 0) {
            first_wrong = results;
            got = result;
            expected = reference;
        }
        ++results;
    }
};

// The numbers of the page's form; what they mean depends on the day. Below, each function computes
// the grid as the lesson's launch does, except where the reader chooses it.
struct Choice {
    unsigned size[3];
    unsigned blocks;
    dim3 block;
};

unsigned covering(std::size_t count, unsigned step) {
    return static_cast<unsigned>(std::max<std::size_t>((count + step - 1) / step, 1));
}

// Day 1: size[0] elements.
template <class Kernel>
Answer add(Kernel kernel, unsigned per_thread, const Choice& choice, std::mt19937& random) {
    const std::size_t n = choice.size[0];
    const dim3 grid = choice.blocks != 0 ? choice.blocks : covering(n, choice.block.x * per_thread);
    Array a(n), b(n), c(n);
    a.randomise(random);
    b.randomise(random);
    kernel<<<grid, choice.block>>>(a.data(), b.data(), c.data(), n);
    Answer answer;
    for (std::size_t i = 0; i < n; ++i)
        answer.compare(c.data()[i], a.data()[i] + b.data()[i], 0);  // one rounding, the same everywhere
    answer.outside = !c.guards_are_intact();
    return answer;
}

// Day 5: C (size[0] x size[1]) = A (size[0] x size[2]) B.
template <class Kernel>
Answer multiply(Kernel kernel, unsigned block_rows, unsigned block_cols, const Choice& choice,
                std::mt19937& random) {
    using course::DeviceMatrix;
    using course::DeviceSpan;
    const auto [m, n, k] = choice.size;
    Array a(std::size_t{m} * k), b(std::size_t{k} * n), c(std::size_t{m} * n);
    a.randomise(random);
    b.randomise(random);
    const auto view = [](const Array& array) {
        return DeviceSpan<float>::from_device_pointer(array.data(), array.size());
    };
    const dim3 grid(covering(n, block_cols), covering(m, block_rows));
    kernel<<<grid, choice.block>>>(DeviceMatrix<const float>(view(a), m, k),
                                   DeviceMatrix<const float>(view(b), k, n),
                                   DeviceMatrix<float>(view(c), m, n));
    Answer answer;
    for (std::size_t row = 0; row < m; ++row) {
        for (std::size_t col = 0; col < n; ++col) {
            double sum = 0;
            double magnitude = 0;
            for (std::size_t i = 0; i < k; ++i) {
                const double product = double{a.data()[row * k + i]} * b.data()[i * n + col];
                sum += product;
                magnitude += std::abs(product);
            }
            // Each product is rounded once, and then with each of at most k additions.
            answer.compare(c.data()[row * n + col], sum, (k + 1) * kRounding * magnitude);
        }
    }
    answer.outside = !c.guards_are_intact();
    return answer;
}

// Day 6: size[0] x size[1] becomes size[1] x size[0].
template <class Kernel>
Answer transpose(Kernel kernel, bool x_counts_rows, const Choice& choice, std::mt19937& random) {
    const auto rows = static_cast<int>(choice.size[0]);
    const auto cols = static_cast<int>(choice.size[1]);
    Array in(std::size_t{choice.size[0]} * choice.size[1]), out(in.size());
    in.randomise(random);
    const unsigned of_rows = covering(choice.size[0], day06::kTile);
    const unsigned of_cols = covering(choice.size[1], day06::kTile);
    const dim3 grid = x_counts_rows ? dim3(of_rows, of_cols) : dim3(of_cols, of_rows);
    kernel<<<grid, choice.block>>>(in.data(), cols, out.data(), rows, rows, cols);
    Answer answer;
    for (int col = 0; col < cols; ++col) {
        for (int row = 0; row < rows; ++row)
            answer.compare(out.data()[col * rows + row], in.data()[row * cols + col], 0);
    }
    answer.outside = !out.guards_are_intact();
    return answer;
}

// Day 15: the sum of size[0] elements.
template <class Launch>
Answer reduce(Launch launch, const Choice& choice, std::mt19937& random) {
    const std::size_t n = choice.size[0];
    // A block of more than kBlock threads writes behind scratch: fewer values than it has threads.
    Array in(n), out(1), scratch(std::size_t{choice.blocks} * day15::kBlock, choice.block.x);
    in.randomise(random);
    out.data()[0] = 0;
    launch(in.data(), n, out.data(), scratch.data(), choice.blocks, choice.block);
    double sum = 0;
    double magnitude = 0;
    for (std::size_t i = 0; i < n; ++i) {
        sum += in.data()[i];
        magnitude += std::abs(in.data()[i]);
    }
    // An element takes part in the additions of its thread, of the tree's 8 levels and of all
    // atomics.
    const std::size_t pieces = covering(n, choice.blocks * day15::kBlock);
    const double additions =
        static_cast<double>(2 * pieces + 8) + static_cast<double>(choice.blocks * pieces);
    Answer answer;
    answer.compare(out.data()[0], sum, additions * kRounding * magnitude);
    answer.outside = !out.guards_are_intact() || !scratch.guards_are_intact();
    return answer;
}

template <class Kernel>
auto with_scratch(Kernel kernel) {
    return [=](const float* in, std::size_t n, float* out, float* scratch, unsigned grid, dim3 block) {
        kernel<<<grid, block>>>(in, n, out, scratch);
    };
}
template <class Kernel>
auto without_scratch(Kernel kernel) {
    return [=](const float* in, std::size_t n, float* out, float*, unsigned grid, dim3 block) {
        kernel<<<grid, block>>>(in, n, out);
    };
}

bool run(std::string_view name, const Choice& choice, std::mt19937& random, Answer& answer) {
    const auto is = [&](const char* kernel) { return name == kernel; };
    if (is("add_one_per_element"))
        answer = add(day01::add_one_per_element, 1, choice, random);
    else if (is("add_grid_stride"))
        answer = add(day01::add_grid_stride, 1, choice, random);
    else if (is("add_float4"))
        answer = add(day01::add_float4, 4, choice, random);
    else if (is("multiply_naive"))
        answer = multiply(day05::multiply_naive, choice.block.y, choice.block.x, choice, random);
    else if (is("multiply_coalesced"))
        answer = multiply(day05::multiply_coalesced, choice.block.y, choice.block.x, choice, random);
    else if (is("multiply_tiled"))
        answer = multiply(day05::multiply_tiled, day05::kTile, day05::kTile, choice, random);
    else if (is("multiply_coarsened"))
        answer =
            multiply(day05::multiply_coarsened, day05::kTile, day05::kTile * day05::kCoarse, choice, random);
    else if (is("transpose_naive"))
        answer = transpose(day06::transpose_naive, false, choice, random);
    else if (is("transpose_strided_loads"))
        answer = transpose(day06::transpose_strided_loads, true, choice, random);
    else if (is("transpose_tiled"))
        answer = transpose(day06::transpose_tiled, false, choice, random);
    else if (is("transpose_padded"))
        answer = transpose(day06::transpose_padded, false, choice, random);
    else if (is("transpose_coarsened"))
        answer = transpose(day06::transpose_coarsened, false, choice, random);
    else if (is("transpose_swizzled"))
        answer = transpose(day06::transpose_swizzled, false, choice, random);
    else if (is("reduce_interleaved"))
        answer = reduce(with_scratch(day15::reduce_interleaved), choice, random);
    else if (is("reduce_sequential"))
        answer = reduce(with_scratch(day15::reduce_sequential), choice, random);
    else if (is("reduce_shared_memory"))
        answer = reduce(without_scratch(day15::reduce_shared_memory), choice, random);
    else if (is("reduce_coarsened"))
        answer = reduce(without_scratch(day15::reduce_coarsened), choice, random);
    else if (is("reduce_shuffle"))
        answer = reduce(without_scratch(day15::reduce_shuffle), choice, random);
    else if (is("reduce_vectorised"))
        answer = reduce(without_scratch(day15::reduce_vectorised), choice, random);
    else
        return false;
    return true;
}

char text[512] = "";

}  // namespace

// The answer is in result(). Where threads switch, this function returns to JavaScript long before
// it has come to its end, so it cannot return anything; emscripten then goes on with it until all
// threads have ended, and only then ends the call.
extern "C" EMSCRIPTEN_KEEPALIVE void run_kernel(const char* name, unsigned size0, unsigned size1,
                                                unsigned size2, unsigned blocks, unsigned block_x,
                                                unsigned block_y, unsigned seed) {
    text[0] = '\0';
    std::mt19937 random(seed);
    Answer answer;
    if (!run(name, {{size0, size1, size2}, blocks, {block_x, block_y}}, random, answer)) {
        std::fprintf(stderr, "there is no kernel '%s'\n", name);
        return;
    }
    using cuda_on_cpu::run_seen;
    std::snprintf(
        text, sizeof text,
        R"({"results":%zu,"wrong":%zu,"first":%zu,"got":"%.9g","expected":"%.9g","outside":%s,"blocks":%llu,)"
        R"("threads":%llu,"switches":%llu})",
        answer.results, answer.wrong, answer.first_wrong, answer.got, answer.expected,
        answer.outside ? "true" : "false", run_seen.blocks, run_seen.threads, run_seen.switches);
}

// JSON; empty: there is none.
extern "C" EMSCRIPTEN_KEEPALIVE const char* result() {
    return text;
}
