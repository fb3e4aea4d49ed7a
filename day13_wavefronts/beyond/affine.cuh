// Day 13, beyond: affine gaps. A gap of k symbols costs `open` once and `extend` for each of them,
// as an insertion of ten symbols is more likely to be one event than ten. Method: O. Gotoh, "An
// Improved Algorithm for Matching Biological Sequences", 1982.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "strips.cuh"

namespace day13 {

// Three scores for each pair of prefixes, the best of alignments that end in different ways.
struct AffineCell {
    int score;   // in any way
    int across;  // in a gap along the row: symbols of b alone
    int down;    // in a gap along the column: symbols of a alone
};

// What a lane needs of the cell above: `across` stays in the row.
__device__ inline AffineCell shuffle(const AffineCell& cell, int lane) {
    return {shuffle(cell.score, lane), 0, shuffle(cell.down, lane)};
}

// What the strip below needs, in one access of 8 bytes.
struct alignas(8) AffineRow {
    int score, down;
    __device__ explicit AffineRow(const AffineCell& cell) : score(cell.score), down(cell.down) {}
    __device__ operator AffineCell() const { return {score, 0, down}; }
};

// Idea: LocalRule with two more scores. A gap is opened from the best score of the cell before it,
// or extended from the score of the same gap one symbol earlier.
// Still limits it: latency, as all strips. Two additions with a maximum and a maximum of three for
// each cell; the last two wait for the cell above.
struct AffineRule {
    using Element = std::uint8_t;
    using Item = int;
    using Value = AffineCell;
    using Row = AffineRow;
    static constexpr bool kHasBest = true;
    // Of a gap that cannot be: no sum of it and one extension overflows.
    static constexpr int kNever = -(1 << 30);
    int match;     // > 0
    int mismatch;  // <= 0
    int first;     // <= 0: open + extend, for the first symbol of a gap
    int extend;    // <= 0, for each other symbol
    __device__ static Item nothing() { return -1; }
    __device__ static int score(const Value& cell) { return cell.score; }
    __device__ Value top(int) const { return {0, kNever, kNever}; }
    __device__ Value left(int) const { return {0, kNever, kNever}; }
    __device__ Value cell(const Value& up, const Value& left, const Value& diagonal, Item of_a,
                          Item of_b) const {
        const int across = __viaddmax_s32(left.across, extend, left.score + first);
        const int down = __viaddmax_s32(up.down, extend, up.score + first);
        const int paired = diagonal.score + (of_a == of_b ? match : mismatch);
        return {__vimax3_s32_relu(paired, across, down), across, down};
    }
};

}  // namespace day13
