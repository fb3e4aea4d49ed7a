// Bug hunt "shelves": the boxes of each shelf, in order of their numbers.
//
//   a shelf has 128 neighbours, the last one what is left; box i bears number i * i mod 256
//   out = the boxes of each shelf by number; of equal numbers, the one that came first
//
//   ./course run bug_hunts --only shelves
#include "checks.hpp"
#include "common/check/check.hpp"
#include "common/device/grid.hpp"

namespace hunts {
namespace {

constexpr int kShelf = 128;
constexpr unsigned kDigits = 16;  // a number has two

struct Box {
    unsigned number;
    float content;
};

// Idea: a radix sort (day 19) in shared memory, a block for each shelf. First by the last digit of
// the numbers, then by the first one.
// Cost removed: comparisons.
// Still limits it: one thread adds up the counts; for each box, those before it are looked at.
__global__ void sort_shelf(DeviceSpan<const float> in, DeviceSpan<float> out) {
    __shared__ Box boxes[kShelf];
    __shared__ unsigned first[kDigits];  // where the boxes with that digit begin
    const unsigned t = threadIdx.x;
    const std::size_t i = static_cast<std::size_t>(blockIdx.x) * kShelf + t;
    const bool has_box = i < in.size();
    if (has_box) boxes[t] = {static_cast<unsigned>(i * i % 256), in[i]};

    for (unsigned shift = 0; shift < 8; shift += 4) {
        if (t < kDigits) first[t] = 0;
        __syncthreads();  // boxes and counts are complete
        const Box mine = has_box ? boxes[t] : Box{};
        const unsigned digit = mine.number >> shift & 15;
        if (has_box && digit + 1 < kDigits) atomicAdd(&first[digit + 1], 1U);
        __syncthreads();  // first[d] is the number of boxes with digit d - 1
        if (t == 0)
            for (unsigned d = 1; d < kDigits; ++d)
                first[d] += first[d - 1];
        unsigned equal_before = 0;
        for (unsigned other = 0; has_box && other < t; ++other)
            equal_before += (boxes[other].number >> shift & 15) == digit ? 1 : 0;
        __syncthreads();  // all boxes are read, and first[d] is where digit d begins
        if (has_box) boxes[first[digit] + equal_before] = mine;
        __syncthreads();  // all places are read
    }
    if (has_box) out[i] = boxes[t].content;
}

}  // namespace

void shelves(DeviceSpan<const float> in, DeviceSpan<float> out, cudaStream_t stream) {
    require_size("shelves", "out", out, in.size());
    require_apart("shelves", as_row(in), as_row(out));
    const unsigned blocks = course::blocks_for(in.size(), kShelf);
    if (blocks == 0) return;
    sort_shelf<<<blocks, kShelf, 0, stream>>>(in, out);
    CUDA_CHECK_LAUNCH();
}

}  // namespace hunts
