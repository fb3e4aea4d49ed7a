// Day 23's host code: argument checks and the list of versions. The kernels and their launches are
// in memory_model.cuh.
#include <array>

#include "common/check/check.hpp"
#include "common/check/require.hpp"
#include "memory_model.cuh"
#include "memory_model.hpp"

namespace day23 {
namespace {

using course::ceil_div;
using course::DeviceSpan;
using course::require;

// True: nothing is to be launched.
bool is_done(DeviceSpan<const std::int32_t> in, DeviceSpan<Record> total, const Workspace& workspace,
             cudaStream_t stream) {
    require(total.size() == 1, "record: total has ", total.size(), " elements; expected 1");
    require(!overlap(in, total), "record: total overlaps in; expected memory of its own");
    require(workspace.capacity() >= in.size(), "record: workspace has capacity ", workspace.capacity(),
            "; expected at least the length of in, ", in.size());
    if (!in.empty()) return false;
    CUDA_CHECK(cudaMemsetAsync(total.data(), 0, sizeof(Record), stream));
    return true;
}

Board* board_of(Workspace& workspace) {
    return reinterpret_cast<Board*>(workspace.board());
}

// The locks.
template <auto kLaunch>
void with_board(DeviceSpan<const std::int32_t> in, DeviceSpan<Record> total, Workspace& workspace,
                cudaStream_t stream) {
    if (is_done(in, total, workspace, stream)) return;
    kLaunch(in.data(), in.size(), total.data(), board_of(workspace), stream);
    CUDA_CHECK_LAUNCH();
}

// publication, last_block.
template <auto kLaunch>
void with_records(DeviceSpan<const std::int32_t> in, DeviceSpan<Record> total, Workspace& workspace,
                  cudaStream_t stream) {
    if (is_done(in, total, workspace, stream)) return;
    kLaunch(in.data(), in.size(), total.data(), board_of(workspace), workspace.records(), stream);
    CUDA_CHECK_LAUNCH();
}

course::Work work(const std::size_t& n) {
    const auto elements = static_cast<double>(n);
    return {.bytes = 4 * elements, .flops = elements};
}

}  // namespace

Workspace::Workspace(std::size_t capacity)
    : capacity_(capacity),
      board_(sizeof(Board) / sizeof(unsigned) + ceil_div<std::size_t>(capacity, kTile)),
      records_(ceil_div<std::size_t>(capacity, kTile)) {}

std::span<const Version> versions() {
    static const std::array<Version, 5> list = {{
        {"lock_with_fences", "a lock, and a fence on either side", with_board<launch_lock_with_fences>, work},
        {"acquire_release", "the lock's accesses acquire and release", with_board<launch_acquire_release>,
         work},
        {"ticket_lock", "blocks wait in a queue", with_board<launch_ticket_lock>, work},
        {"publication", "a record and a flag for each block", with_records<launch_publication>, work},
        {"last_block", "the last block adds up", with_records<launch_last_block>, work},
    }};
    return list;
}

std::size_t state_words() {
    return sizeof(State) / sizeof(std::uint32_t);
}

void read_while_written(std::uint32_t states, DeviceSpan<std::uint32_t> mixed,
                        DeviceSpan<std::uint32_t> memory, cudaStream_t stream) {
    require(states <= 1U << 30, "read_while_written: states is ", states, "; expected at most 2^30");
    require(!mixed.empty(), "read_while_written: mixed has 0 elements; expected one for each reader");
    require(memory.size() == state_words(), "read_while_written: memory has ", memory.size(),
            " elements; expected ", state_words());
    require(!overlap(DeviceSpan<const std::uint32_t>(mixed), memory),
            "read_while_written: mixed overlaps memory; expected no element in common");
    launch_sequence_lock(reinterpret_cast<State*>(memory.data()), states, mixed.data(),
                         static_cast<unsigned>(mixed.size()), stream);
    CUDA_CHECK_LAUNCH();
}

}  // namespace day23
