// The list of the bug hunts, and what all their launchers check. The kernels are in the files named
// after them.
//
//   hunt            computes                                    what is watched, beside the result
//   filter          a 3 x 3 filter of a matrix
//   resample        a signal stretched or shrunk
//   vector_matrix   a row vector times a matrix
//   midpoints       the mean of neighbours
//   warp_sums       the sum of every 32
//   centre_rows     rows without their mean
//   column_sums     the sum of every column
//   rods            heat flows in rods, two steps at a time
//   recordings      two recordings, in order of time
//   gradient        the backward pass of a convolution
//   scale_rows      a factor for every row                      sectors of global memory
//   transpose       rows become columns                         wavefronts of shared memory
//   fold            a signal folded upon itself                 races
//   running_sums    the running sums of every row
//   shelves         boxes of a shelf, in order of their numbers
//   relay           the running sums of one long signal         races
//   places          where the blocks of a filter begin          races
//   flood           water that comes in from the left
//   halves          heat in a plate, each half in a stream
//   letters         values sent to another process
//   squares         how crowded is it around a point
//   details         what a picture has and its blurred copy not
//
//   ./course run bug_hunts                        all of them, verified and timed
//   ./course inspect bug_hunts --only fold     one of them, watched
#include <array>
#include <string_view>

#include "checks.hpp"
#include "common/device/grid.hpp"
#include "hunts.hpp"
#include "references.hpp"

namespace hunts {
namespace {

// One kernel's layouts and launcher, in the order of the list.

Layout filter_layout(const Shape& p) {
    return {.in = p, .out = p, .vector = 9, .terms = 9};
}

// Wide ones are stretched, tall ones are shrunk.
Layout resample_layout(const Shape& p) {
    const std::size_t n = p.size();
    return {.in = {1, n}, .out = {1, p.cols >= p.rows ? n + n / 4 : course::ceil_div<std::size_t>(2 * n, 3)}};
}

Layout vector_matrix_layout(const Shape& p) {
    return {.in = p, .out = {1, p.cols}, .vector = p.rows, .terms = p.rows + 1};
}

Layout midpoints_layout(const Shape& p) {
    return {.in = {1, p.size() + 1}, .out = {1, p.size()}, .terms = 2};
}

Layout warp_sums_layout(const Shape& p) {
    return {.in = {1, p.size()}, .out = {1, course::ceil_div<std::size_t>(p.size(), 32)}, .terms = 32};
}

Layout centre_rows_layout(const Shape& p) {
    return {.in = p, .out = p, .terms = p.cols + 2};
}

Layout column_sums_layout(const Shape& p) {
    return {.in = p, .out = {1, p.cols}, .terms = p.rows + 1};
}

Layout scale_rows_layout(const Shape& p) {
    return {.in = p, .out = p, .vector = p.rows};
}

Layout transpose_layout(const Shape& p) {
    return {.in = p, .out = {p.cols, p.rows}};
}

Layout fold_layout(const Shape& p) {
    return {.in = {1, p.size()}, .out = {1, p.cols}, .terms = p.rows + 1};
}

Layout running_sums_layout(const Shape& p) {
    return {.in = p, .out = p, .terms = p.cols + 1};
}

Layout shelves_layout(const Shape& p) {
    return {.in = {1, p.size()}, .out = {1, p.size()}};
}

Layout rods_layout(const Shape& p) {
    return {.in = p, .out = p, .terms = 8};  // two sums of three and their divisions
}

Layout relay_layout(const Shape& p) {
    return {.in = {1, p.size()}, .out = {1, p.size()}, .terms = p.size() + 1};
}

Layout places_layout(const Shape& p) {
    return {.in = {1, p.size()}, .out = {1, course::ceil_div<std::size_t>(p.size(), 256)}};
}

Layout flood_layout(const Shape& p) {
    return {.in = p, .out = p};
}

Layout halves_layout(const Shape& p) {
    return {.in = p, .out = p, .terms = 8};
}

Layout letters_layout(const Shape& p) {
    return {.in = {1, p.size()}, .out = {1, p.size()}};
}

Layout squares_layout(const Shape& p) {
    return {.in = {2, p.size()}, .out = {1, p.size()}};
}

Layout details_layout(const Shape& p) {
    return {.in = p, .out = p, .terms = 9};  // two blurs, and a difference
}

Layout recordings_layout(const Shape& p) {
    return {.in = {2, p.size()}, .out = {1, 2 * p.size()}};
}

// The stride is 2.
Layout gradient_layout(const Shape& p) {
    return {.in = p, .out = {2 * p.rows, 2 * p.cols}, .vector = 9, .terms = 9};
}

// Each element of the input and of the vector is read once, and each of the output written once.
template <Layout (*LAYOUT)(const Shape&)>
course::Work work(const Shape& problem) {
    const Layout layout = LAYOUT(problem);
    const double written = sizeof(float) * static_cast<double>(layout.out.size());
    return {.bytes = written + sizeof(float) * static_cast<double>(layout.in.size() + layout.vector),
            .written = written};
}

template <Layout (*LAYOUT)(const Shape&)>
Hunt hunt(const char* name, const char* idea, void (*launch)(const Operands&, cudaStream_t),
          decltype(Kernel::on_cpu) on_cpu) {
    return {name, idea, {launch, LAYOUT, on_cpu}, work<LAYOUT>};
}

}  // namespace

void require_shape(std::string_view hunt, std::string_view argument, DeviceMatrix<const float> matrix,
                   const Shape& expected) {
    course::require(matrix.rows() == expected.rows && matrix.cols() == expected.cols, hunt, ": ", argument,
                    " is ", matrix, "; expected ", expected.rows, " x ", expected.cols);
}

void require_size(std::string_view hunt, std::string_view argument, DeviceSpan<const float> span,
                  std::size_t expected) {
    course::require(span.size() == expected, hunt, ": ", argument, " has ", span.size(),
                    " elements; expected ", expected);
}

void require_apart(std::string_view hunt, DeviceMatrix<const float> in, DeviceMatrix<const float> out) {
    course::require(!overlap(in, out), hunt, ": out overlaps an input; expected no common element");
}

std::span<const Hunt> hunts() {
    static const std::array list = std::to_array<Hunt>({
        hunt<filter_layout>(
            "filter", "a 3 x 3 filter of a matrix",
            [](const Operands& o, cudaStream_t stream) { filter(o.in, o.vector, o.out, stream); },
            filter_on_cpu),
        hunt<resample_layout>(
            "resample", "a signal stretched or shrunk",
            [](const Operands& o, cudaStream_t stream) { resample(as_span(o.in), as_span(o.out), stream); },
            resample_on_cpu),
        hunt<vector_matrix_layout>(
            "vector_matrix", "a row vector times a matrix",
            [](const Operands& o, cudaStream_t stream) {
                vector_matrix(o.in, o.vector, as_span(o.out), stream);
            },
            vector_matrix_on_cpu),
        hunt<midpoints_layout>(
            "midpoints", "the mean of neighbours",
            [](const Operands& o, cudaStream_t stream) { midpoints(as_span(o.in), as_span(o.out), stream); },
            midpoints_on_cpu),
        hunt<warp_sums_layout>(
            "warp_sums", "the sum of every 32",
            [](const Operands& o, cudaStream_t stream) { warp_sums(as_span(o.in), as_span(o.out), stream); },
            warp_sums_on_cpu),
        hunt<centre_rows_layout>(
            "centre_rows", "rows without their mean",
            [](const Operands& o, cudaStream_t stream) { centre_rows(o.in, o.out, stream); },
            centre_rows_on_cpu),
        hunt<column_sums_layout>(
            "column_sums", "the sum of every column",
            [](const Operands& o, cudaStream_t stream) { column_sums(o.in, as_span(o.out), stream); },
            column_sums_on_cpu),
        hunt<rods_layout>(
            "rods", "heat flows in rods, two steps at a time",
            [](const Operands& o, cudaStream_t stream) { rods(o.in, o.out, stream); }, rods_on_cpu),
        hunt<recordings_layout>(
            "recordings", "two recordings, in order of time",
            [](const Operands& o, cudaStream_t stream) { recordings(o.in, as_span(o.out), stream); },
            recordings_on_cpu),
        hunt<gradient_layout>(
            "gradient", "the backward pass of a convolution",
            [](const Operands& o, cudaStream_t stream) { gradient(o.in, o.vector, o.out, stream); },
            gradient_on_cpu),
        hunt<scale_rows_layout>(
            "scale_rows", "a factor for every row",
            [](const Operands& o, cudaStream_t stream) { scale_rows(o.in, o.vector, o.out, stream); },
            scale_rows_on_cpu),
        hunt<transpose_layout>(
            "transpose", "rows become columns",
            [](const Operands& o, cudaStream_t stream) { transpose(o.in, o.out, stream); }, transpose_on_cpu),
        hunt<fold_layout>(
            "fold", "a signal folded upon itself",
            [](const Operands& o, cudaStream_t stream) { fold(as_span(o.in), as_span(o.out), stream); },
            fold_on_cpu),
        hunt<running_sums_layout>(
            "running_sums", "the running sums of every row",
            [](const Operands& o, cudaStream_t stream) { running_sums(o.in, o.out, stream); },
            running_sums_on_cpu),
        hunt<shelves_layout>(
            "shelves", "boxes of a shelf, in order of their numbers",
            [](const Operands& o, cudaStream_t stream) { shelves(as_span(o.in), as_span(o.out), stream); },
            shelves_on_cpu),
        hunt<relay_layout>(
            "relay", "the running sums of one long signal",
            [](const Operands& o, cudaStream_t stream) { relay(as_span(o.in), as_span(o.out), stream); },
            running_sums_on_cpu),
        hunt<places_layout>(
            "places", "where the blocks of a filter begin",
            [](const Operands& o, cudaStream_t stream) { places(as_span(o.in), as_span(o.out), stream); },
            places_on_cpu),
        hunt<flood_layout>(
            "flood", "water that comes in from the left",
            [](const Operands& o, cudaStream_t stream) { flood(o.in, o.out, stream); }, flood_on_cpu),
        hunt<halves_layout>(
            "halves", "heat in a plate, each half in a stream",
            [](const Operands& o, cudaStream_t stream) { halves(o.in, o.out, stream); }, halves_on_cpu),
        hunt<letters_layout>(
            "letters", "values sent to another process",
            [](const Operands& o, cudaStream_t stream) { letters(as_span(o.in), as_span(o.out), stream); },
            letters_on_cpu),
        hunt<squares_layout>(
            "squares", "how crowded is it around a point",
            [](const Operands& o, cudaStream_t stream) { squares(o.in, as_span(o.out), stream); },
            squares_on_cpu),
        hunt<details_layout>(
            "details", "what a picture has and its blurred copy not",
            [](const Operands& o, cudaStream_t stream) { details(o.in, o.out, stream); }, details_on_cpu),
    });
    return list;
}

}  // namespace hunts
