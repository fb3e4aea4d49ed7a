#include "common/inspection.hpp"

#include <cuda_runtime.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "common/check.hpp"

namespace course {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::string_view, 2> kSpaces = {"shared", "global"};
constexpr std::array<std::string_view, 5> kOperations = {"load", "store", "atomic", "async_copy",
                                                         "matrix_load"};

template <class Enumeration, std::size_t N>
Enumeration parse(const Json& json, const std::array<std::string_view, N>& names, const char* what) {
    const auto text = json.get<std::string>();
    const auto found = std::ranges::find(names, text);
    if (found == names.end()) throw std::invalid_argument(fmt::format("'{}' is no {}", text, what));
    return static_cast<Enumeration>(found - names.begin());
}

Json to_json(const SourceLine& source) {
    return {{"file", source.file}, {"line", source.line}};
}

Json to_json(const WorstRequest& worst) {
    return {{"transactions", worst.transactions},
            {"active_lanes", worst.active_lanes},
            {"block", worst.block},
            {"warp", worst.warp},
            {"offsets", worst.offsets},
            {"array", worst.array}};
}

Json to_json(const AccessLine& line) {
    return {{"source", to_json(line.source)},
            {"space", name(line.space)},
            {"operation", name(line.operation)},
            {"bytes", line.bytes},
            {"requests", line.requests},
            {"transactions", line.transactions},
            {"ideal", line.ideal},
            {"active_lanes", line.active_lanes},
            {"bytes_used", line.bytes_used},
            {"worst", to_json(line.worst)}};
}

Json to_json(const Finding& finding) {
    Json json = {{"kind", finding.kind},       {"source", to_json(finding.source)},
                 {"message", finding.message}, {"why", finding.why},
                 {"block", finding.block},     {"thread", finding.thread},
                 {"count", finding.count}};
    if (finding.other) {
        json["other"] = to_json(*finding.other);
        json["other_block"] = finding.other_block;
        json["other_thread"] = finding.other_thread;
    }
    return json;
}

template <class Range>
Json list_of(const Range& range) {
    Json list = Json::array();
    for (const auto& each : range)
        list.push_back(to_json(each));
    return list;
}

template <class T>
void read(const Json& json, const char* key, T& value) {
    value = json.at(key).get<T>();
}

SourceLine source_from(const Json& json) {
    SourceLine source;
    read(json, "file", source.file);
    read(json, "line", source.line);
    return source;
}

WorstRequest worst_from(const Json& json) {
    WorstRequest worst;
    read(json, "transactions", worst.transactions);
    read(json, "active_lanes", worst.active_lanes);
    read(json, "block", worst.block);
    read(json, "warp", worst.warp);
    read(json, "offsets", worst.offsets);
    read(json, "array", worst.array);
    return worst;
}

AccessLine access_line_from(const Json& json) {
    AccessLine line;
    line.source = source_from(json.at("source"));
    line.space = parse<Space>(json.at("space"), kSpaces, "space");
    line.operation = parse<Operation>(json.at("operation"), kOperations, "operation");
    read(json, "bytes", line.bytes);
    read(json, "requests", line.requests);
    read(json, "transactions", line.transactions);
    read(json, "ideal", line.ideal);
    read(json, "active_lanes", line.active_lanes);
    read(json, "bytes_used", line.bytes_used);
    line.worst = worst_from(json.at("worst"));
    return line;
}

Finding finding_from(const Json& json) {
    Finding finding;
    read(json, "kind", finding.kind);
    finding.source = source_from(json.at("source"));
    read(json, "message", finding.message);
    read(json, "why", finding.why);
    read(json, "block", finding.block);
    read(json, "thread", finding.thread);
    read(json, "count", finding.count);
    if (json.contains("other")) {
        finding.other = source_from(json.at("other"));
        read(json, "other_block", finding.other_block);
        read(json, "other_thread", finding.other_thread);
    }
    return finding;
}

KernelInspection kernel_from(const Json& json) {
    KernelInspection kernel;
    read(json, "name", kernel.name);
    read(json, "launches", kernel.launches);
    read(json, "blocks", kernel.blocks);
    read(json, "inspected_blocks", kernel.inspected_blocks);
    read(json, "threads_per_block", kernel.threads_per_block);
    read(json, "static_shared", kernel.static_shared);
    read(json, "dynamic_shared", kernel.dynamic_shared);
    read(json, "barriers", kernel.barriers);
    read(json, "global_read_bytes", kernel.global_read_bytes);
    read(json, "global_written_bytes", kernel.global_written_bytes);
    read(json, "unique_read_bytes", kernel.unique_read_bytes);
    read(json, "unique_written_bytes", kernel.unique_written_bytes);
    for (const Json& line : json.at("lines"))
        kernel.lines.push_back(access_line_from(line));
    for (const Json& finding : json.at("findings"))
        kernel.findings.push_back(finding_from(finding));
    return kernel;
}

InspectedVariant variant_from(const Json& json) {
    InspectedVariant variant;
    read(json, "problem", variant.problem);
    read(json, "variant", variant.variant);
    read(json, "verified", variant.verified);
    read(json, "cannot_run", variant.cannot_run);
    read(json, "failure", variant.failure);
    read(json, "flops", variant.flops);
    for (const Json& kernel : json.at("kernels"))
        variant.kernels.push_back(kernel_from(kernel));
    return variant;
}

// What the library says of a key that is missing, or of a value of the wrong type, in the course's kind of exception.
template <class Read>
auto as_invalid_argument(Read read_all) {
    try {
        return read_all();
    } catch (const Json::exception& error) {
        throw std::invalid_argument(fmt::format("not an inspection: {}", error.what()));
    }
}

}  // namespace

std::string_view name(Space space) {
    return kSpaces[static_cast<std::size_t>(space)];
}

std::string_view name(Operation operation) {
    return kOperations[static_cast<std::size_t>(operation)];
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
        static_cast<void>(cuda_on_cpu::end_inspection());
        throw;
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
    return {{"name", kernel.name},
            {"launches", kernel.launches},
            {"blocks", kernel.blocks},
            {"inspected_blocks", kernel.inspected_blocks},
            {"threads_per_block", kernel.threads_per_block},
            {"static_shared", kernel.static_shared},
            {"dynamic_shared", kernel.dynamic_shared},
            {"barriers", kernel.barriers},
            {"global_read_bytes", kernel.global_read_bytes},
            {"global_written_bytes", kernel.global_written_bytes},
            {"unique_read_bytes", kernel.unique_read_bytes},
            {"unique_written_bytes", kernel.unique_written_bytes},
            {"lines", list_of(kernel.lines)},
            {"findings", list_of(kernel.findings)}};
}

namespace {

Json to_json(const InspectedVariant& variant) {
    Json kernels = Json::array();
    for (const KernelInspection& kernel : variant.kernels)
        kernels.push_back(course::to_json(kernel));
    return {{"problem", variant.problem},
            {"variant", variant.variant},
            {"verified", variant.verified},
            {"cannot_run", variant.cannot_run},
            {"failure", variant.failure},
            {"flops", variant.flops},
            {"kernels", kernels}};
}

}  // namespace

Json to_json(const InspectionFile& file) {
    Json results = Json::array();
    for (const InspectedVariant& variant : file.results)
        results.push_back(to_json(variant));
    return {{"day", file.day}, {"commit", file.commit}, {"results", results}};
}

KernelInspection kernel_inspection_from_json(const Json& json) {
    return as_invalid_argument([&] { return kernel_from(json); });
}

InspectionFile inspection_file_from_json(const Json& json) {
    return as_invalid_argument([&] {
        InspectionFile file;
        read(json, "day", file.day);
        read(json, "commit", file.commit);
        for (const Json& result : json.at("results"))
            file.results.push_back(variant_from(result));
        return file;
    });
}

}  // namespace course
