// Launchers of the selective scan: argument checks and the list of versions.
#include <array>
#include <string_view>

#include "common/check/check.hpp"
#include "common/check/require.hpp"
#include "selective_scan.cuh"
#include "selective_scan.hpp"

namespace day16 {
namespace {

using course::require;

template <auto kLaunch>
void checked(const SelectiveScan& scan, cudaStream_t stream) {
    const auto [batch, channels, length, states] = scan.shape;
    require(states >= 1 && states <= kMostStates, "selective_scan: states is ", states, "; expected 1 to ",
            kMostStates);
    const auto check = [&](std::string_view name, auto array, std::size_t expected,
                           std::string_view extents) {
        require(array.size() == expected, "selective_scan: ", name, " has ", array.size(),
                " elements; expected ", extents, " = ", expected);
        require(!overlap(scan.y, array) || name == "y", "selective_scan: y overlaps ", name,
                "; expected memory apart");
    };
    const std::size_t elements = batch * channels * length;
    check("x", scan.x, elements, "batch x channels x length");
    check("delta", scan.delta, elements, "batch x channels x length");
    check("a", scan.a, channels * states, "channels x states");
    check("b", scan.b, batch * states * length, "batch x states x length");
    check("c", scan.c, batch * states * length, "batch x states x length");
    check("d", scan.d, channels, "channels");
    check("y", scan.y, elements, "batch x channels x length");
    if (elements == 0) return;
    const SelectiveArrays arrays{.x = scan.x.data(),
                                 .delta = scan.delta.data(),
                                 .a = scan.a.data(),
                                 .b = scan.b.data(),
                                 .c = scan.c.data(),
                                 .d = scan.d.data(),
                                 .y = scan.y.data(),
                                 .length = length,
                                 .rows = course::blocks_for(batch * channels, 1),
                                 .channels = static_cast<unsigned>(channels),
                                 .states = static_cast<unsigned>(states)};
    kLaunch(arrays, stream);
    CUDA_CHECK_LAUNCH();
}

// Multiplications and additions; exponentials are not counted.
course::Work work(const SelectiveShape& shape) {
    const auto elements = static_cast<double>(shape.batch * shape.channels * shape.length);
    const auto states = static_cast<double>(shape.states);
    const auto inputs = static_cast<double>(shape.batch * shape.length) * states;
    const auto constants = static_cast<double>(shape.channels) * (states + 1);
    return {.bytes = sizeof(float) * (3 * elements + 2 * inputs + constants),
            .written = sizeof(float) * elements,
            .flops = elements * (6 * states + 2)};
}

}  // namespace

std::span<const SelectiveVersion> selective_versions() {
    static const std::array<SelectiveVersion, 4> list = {{
        {"sequential", "a thread for each channel, one time step after another",
         checked<launch_selective_sequential>, work},
        {"block_scan", "a thread for each time step", checked<launch_selective_block_scan>, work},
        {"chunks", "a thread has eight time steps in registers", checked<launch_selective_chunks<8, 1>>,
         work},
        {"shared_inputs", "b and c are loaded once for four channels", checked<launch_selective_chunks<4, 4>>,
         work},
    }};
    return list;
}

}  // namespace day16
