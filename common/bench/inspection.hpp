// Inspection of kernels while they run on the CPU: bank conflicts, coalescing, races and bad
// accesses, line by line.
//
//     const course::Inspection seen = course::inspect([&] { day05::multiply("tiled_static", a, b, c, nullptr); });
//
// Only a build with the preset `inspect` can inspect kernels. The data types and their JSON are
// part of every build.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "cuda_on_cpu/include/cuda_on_cpu/inspection.h"  // data types only, so nvcc compiles it too

namespace course {

using cuda_on_cpu::AccessLine;
using cuda_on_cpu::Finding;
using cuda_on_cpu::Inspection;
using cuda_on_cpu::InspectionOptions;
using cuda_on_cpu::KernelInspection;
using cuda_on_cpu::Operation;
using cuda_on_cpu::SourceLine;
using cuda_on_cpu::Space;
using cuda_on_cpu::TraceStep;
using cuda_on_cpu::WarpTrace;
using cuda_on_cpu::WorstRequest;

// "shared", "global"
std::string_view name(Space space);
// "load", "store", ...: kOperationNames
std::string_view name(Operation operation);

// Why this build cannot inspect; empty if it can.
std::string why_no_inspection();

// Calls `launch`, waits for the device, and returns what its kernels did. A kernel that fails is
// reported as a finding, and the device is usable again afterwards. Other exceptions of `launch`
// propagate. Throws std::logic_error where why_no_inspection() is not empty.
Inspection inspect(const std::function<void()>& launch, const InspectionOptions& options = {});

// One version on one problem, as a day's program writes it (--inspect FILE).
struct InspectedVersion {
    std::string problem;
    std::string version;
    bool judged = true;  // is the result compared with a reference? Not for a reader's own program
    bool verified = false;
    std::string cannot_run{};  // why it was not run; then there are no kernels
    std::string failure{};     // what is wrong with the result, or ""
    double flops = 0;          // as the version declares them; 0: not known
    double seconds = 0;        // taken by the inspected launch
    // Copies to the host for which the host waited, and their bytes.
    std::uint64_t awaited_copies = 0;
    std::uint64_t awaited_copy_bytes = 0;
    std::vector<KernelInspection> kernels{};

    bool operator==(const InspectedVersion&) const = default;
};

struct InspectionFile {
    std::string day;
    std::string commit;
    std::vector<InspectedVersion> results;

    bool operator==(const InspectionFile&) const = default;
};

nlohmann::ordered_json to_json(const KernelInspection& kernel);
nlohmann::ordered_json to_json(const InspectionFile& file);

// The inverse functions. They throw std::invalid_argument with the name of a key that is missing
// or has the wrong type.
KernelInspection kernel_inspection_from_json(const nlohmann::ordered_json& json);
InspectionFile inspection_file_from_json(const nlohmann::ordered_json& json);

}  // namespace course
