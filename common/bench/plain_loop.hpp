// A plain C++ loop as a peer: what a programmer would write first for the host's CPU, in the same
// types as the kernels, on one thread and, by OpenMP, on all.
//
//     for (course::Contestant& peer : course::plain_loops(
//              work, seconds, [n] { return course::unwritten<float>(n); },
//              [&](std::vector<float>& out, int threads) {
//     #pragma omp parallel for num_threads(threads)
//                  for (std::size_t i = 0; i < out.size(); ++i) out[i] = 2 * in[i];
//              },
//              [&](const std::vector<float>& out) { return verify(out, expected); }))
//         usual.add(std::move(peer));
//
// UsualCase::plain_loop() does it for the data of a usual case. The loops run where times count,
// which is --bench on a machine with a GPU; elsewhere with --cpu-times, and where --only names one.
// Their records have the device kHostDevice, so no ratio of the tables counts them. `seconds` is
// what one thread takes, estimated: a loop that takes more than 5 is run twice, once to verify it
// and once to time it, and one that takes more than 20 not at all.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "common/bench/program.hpp"
#include "common/bench/work.hpp"
#include "common/check/unwritten.hpp"

namespace course {

// "plain_loop_1_thread", "plain_loop_16_threads"
std::string plain_loop_name(int threads);

// 1 and, if there are more, the number of threads that OpenMP starts.
std::vector<int> plain_loop_threads();

// Of a loop that takes so long: why it is not run, or ""; and how often it is timed, at least.
std::string too_long_for_a_plain_loop(double seconds);
int repeats_of_plain_loop(double seconds);

// An output that nothing has written yet: verify() counts its elements as untouched.
template <class T>
std::vector<T> unwritten(std::size_t size) {
    std::vector<T> values(size);
    const std::span<const std::byte> bytes = unwritten_bytes<T>();
    for (T& value : values)
        std::memcpy(&value, bytes.data(), sizeof(T));
    return values;
}

// make_out() returns an output, loop(out, threads) fills it, and verify(out) -> VerifyResult checks
// it: before the loop is timed and, in a new output, afterwards.
template <class MakeOut, class Loop, class Verify>
std::vector<Contestant> plain_loops(const Work& work, double seconds, MakeOut make_out, Loop loop,
                                    Verify verify) {
    std::vector<Contestant> peers;
    for (const int threads : plain_loop_threads()) {
        peers.push_back({.name = plain_loop_name(threads),
                         .role = Role::kPeer,
                         .work = work,
                         .cannot_run = too_long_for_a_plain_loop(seconds / threads),
                         .on_host = true,
                         .plain_loop_repeats = repeats_of_plain_loop(seconds / threads)});
        peers.back().prepare = [make_out, loop, verify, threads](Contestant& contestant) {
            const auto out = std::make_shared<std::invoke_result_t<MakeOut>>(make_out());
            contestant.launch = [out, loop, threads](cudaStream_t) { loop(*out, threads); };
            contestant.verify = [out, make_out, verify] {
                const VerifyResult result = verify(*out);
                *out = make_out();
                return result;
            };
        };
    }
    return peers;
}

}  // namespace course
