// The paged cache, latent attention and speculative decoding as cases of the day's program.
#pragma once

#include "common/bench/program.hpp"

namespace day29 {

// dims: batch x heads x heads of K x tokens x head dimension, as of the day's other cases. The
// pages of all sequences lie in random order in the pool. Ragged: sequences of different lengths.
// Without contestants for a head dimension of latent attention.
course::Case make_paged_case(const course::Dims& dims, bool ragged);

// dims: the same, with one head of K and 192 or 576 columns of a key: a latent of 128 or 512, and
// 64 that carry the position. Without contestants for other dims.
course::Case make_latent_case(const course::Dims& dims);

// dims: batch x proposed tokens x tokens of the vocabulary. Without contestants for five extents.
course::Case make_speculation_case(const course::Dims& dims);

// Is it a size of latent attention?
bool is_latent(const course::Dims& dims);

// The first sequence is the longest. Ragged: the others have 1 to `capacity` tokens.
std::vector<int> lengths_of(std::size_t batch, std::size_t capacity, bool ragged);

}  // namespace day29
