#include "common/bench/inspection.hpp"

#include <cuda_runtime.h>
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "common/check/check.hpp"
#include "cuda_on_cpu/inspector/inspection_json.hpp"

namespace course {

using cuda_on_cpu::Json;
using cuda_on_cpu::json_of;
using cuda_on_cpu::Of;

template <Of<InspectedVersion> T, class Visit>
void fields(T& version, const Visit& visit) {
    visit("problem", version.problem);
    visit("version", version.version);
    visit("verified", version.verified);
    visit("cannot_run", version.cannot_run);
    visit("failure", version.failure);
    visit("flops", version.flops);
    visit("seconds", version.seconds);
    visit("awaited_copies", version.awaited_copies);
    visit("awaited_copy_bytes", version.awaited_copy_bytes);
    visit("kernels", version.kernels);
}

template <Of<InspectionFile> T, class Visit>
void fields(T& file, const Visit& visit) {
    visit("day", file.day);
    visit("commit", file.commit);
    visit("results", file.results);
}

namespace {

// Converts the JSON library's exceptions (a missing key, a value of the wrong type) to those of
// the course.
template <class T>
T record_from(const Json& json) {
    try {
        T record;
        cuda_on_cpu::read_record(json, record);
        return record;
    } catch (const Json::exception& error) {
        throw std::invalid_argument(fmt::format("not an inspection: {}", error.what()));
    }
}

}  // namespace

std::string_view name(Space space) {
    return cuda_on_cpu::kSpaceNames[static_cast<std::size_t>(space)];
}

std::string_view name(Operation operation) {
    return cuda_on_cpu::kOperationNames[static_cast<std::size_t>(operation)];
}

#ifdef COURSE_INSPECT

std::string why_no_inspection() {
    return {};
}

Inspection inspect(const std::function<void()>& launch, const InspectionOptions& options) {
    cuda_on_cpu::begin_inspection(options);
    try {
        launch();
    } catch (...) {
        // If a kernel has failed, the findings describe the failure better than this exception
        // does.
        if (cudaDeviceSynchronize() == cudaSuccess) {
            static_cast<void>(cuda_on_cpu::end_inspection());
            throw;
        }
    }
    if (cudaDeviceSynchronize() != cudaSuccess) CUDA_CHECK(cudaDeviceReset());
    return cuda_on_cpu::end_inspection();
}

#else

std::string why_no_inspection() {
#ifdef CUDA_ON_CPU
    return "this build does not inspect kernels: configure it with cmake --preset inspect";
#else
    return "kernels that run on a GPU cannot be inspected: configure a build with cmake --preset inspect";
#endif
}

Inspection inspect(const std::function<void()>&, const InspectionOptions&) {
    throw std::logic_error(why_no_inspection());
}

#endif

Json to_json(const KernelInspection& kernel) {
    return json_of(kernel);
}

Json to_json(const InspectionFile& file) {
    return json_of(file);
}

KernelInspection kernel_inspection_from_json(const Json& json) {
    return record_from<KernelInspection>(json);
}

InspectionFile inspection_file_from_json(const Json& json) {
    return record_from<InspectionFile>(json);
}

}  // namespace course
