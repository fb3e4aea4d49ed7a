#include "common/bench/inspection.hpp"

#include <cuda_runtime.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <concepts>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "common/check/check.hpp"

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

// The fields of each record, named once: `visit(name, field)` writes or reads. Of a field that may be missing it says whether it is there.
template <class T, class U>
concept Of = std::same_as<std::remove_const_t<T>, U>;

template <Of<SourceLine> T, class Visit>
void fields(T& source, const Visit& visit) {
    visit("file", source.file);
    visit("line", source.line);
}

template <Of<WorstRequest> T, class Visit>
void fields(T& worst, const Visit& visit) {
    visit("transactions", worst.transactions);
    visit("active_lanes", worst.active_lanes);
    visit("block", worst.block);
    visit("warp", worst.warp);
    visit("offsets", worst.offsets);
    visit("array", worst.array);
}

template <Of<AccessLine> T, class Visit>
void fields(T& line, const Visit& visit) {
    visit("source", line.source);
    visit("space", line.space);
    visit("operation", line.operation);
    visit("bytes", line.bytes);
    visit("requests", line.requests);
    visit("transactions", line.transactions);
    visit("ideal", line.ideal);
    visit("active_lanes", line.active_lanes);
    visit("bytes_used", line.bytes_used);
    visit("worst", line.worst);
}

template <Of<Finding> T, class Visit>
void fields(T& finding, const Visit& visit) {
    visit("kind", finding.kind);
    visit("source", finding.source);
    visit("message", finding.message);
    visit("why", finding.why);
    visit("block", finding.block);
    visit("thread", finding.thread);
    visit("count", finding.count);
    if (!visit("other", finding.other)) return;
    visit("other_block", finding.other_block);
    visit("other_thread", finding.other_thread);
}

template <Of<KernelInspection> T, class Visit>
void fields(T& kernel, const Visit& visit) {
    visit("name", kernel.name);
    visit("launches", kernel.launches);
    visit("blocks", kernel.blocks);
    visit("inspected_blocks", kernel.inspected_blocks);
    visit("threads_per_block", kernel.threads_per_block);
    visit("static_shared", kernel.static_shared);
    visit("dynamic_shared", kernel.dynamic_shared);
    visit("barriers", kernel.barriers);
    visit("dropped_accesses", kernel.dropped_accesses);
    visit("all_memory_watched", kernel.all_memory_watched);
    visit("global_read_bytes", kernel.global_read_bytes);
    visit("global_written_bytes", kernel.global_written_bytes);
    visit("unique_read_bytes", kernel.unique_read_bytes);
    visit("unique_written_bytes", kernel.unique_written_bytes);
    visit("lines", kernel.lines);
    visit("findings", kernel.findings);
}

template <Of<InspectedVariant> T, class Visit>
void fields(T& variant, const Visit& visit) {
    visit("problem", variant.problem);
    visit("variant", variant.variant);
    visit("verified", variant.verified);
    visit("cannot_run", variant.cannot_run);
    visit("failure", variant.failure);
    visit("flops", variant.flops);
    visit("seconds", variant.seconds);
    visit("kernels", variant.kernels);
}

template <Of<InspectionFile> T, class Visit>
void fields(T& file, const Visit& visit) {
    visit("day", file.day);
    visit("commit", file.commit);
    visit("results", file.results);
}

struct IgnoreField {
    template <class T>
    bool operator()(const char*, T&) const {
        return true;
    }
};
template <class T>
concept Record = requires(T& value) {
    fields(value, IgnoreField{});
};
template <class T>
concept ListOfRecords = Record<typename T::value_type>;

template <class T>
Json json_of(const T& value) {
    if constexpr (Record<T>) {
        Json json = Json::object();
        fields(value, [&]<class Field>(const char* key, const Field& field) {
            if constexpr (Of<Field, std::optional<SourceLine>>) {
                if (field) json[key] = json_of(*field);
                return field.has_value();
            } else {
                json[key] = json_of(field);
                return true;
            }
        });
        return json;
    } else if constexpr (ListOfRecords<T>) {
        Json list = Json::array();
        for (const auto& each : value)
            list.push_back(json_of(each));
        return list;
    } else if constexpr (Of<T, Space> || Of<T, Operation>) {
        return name(value);
    } else {
        return value;
    }
}

template <class T>
void read(const Json& json, T& value) {
    if constexpr (Record<T>) {
        fields(value, [&]<class Field>(const char* key, Field& field) {
            if constexpr (Of<Field, std::optional<SourceLine>>) {
                if (json.contains(key)) read(json.at(key), field.emplace());
                return field.has_value();
            } else {
                read(json.at(key), field);
                return true;
            }
        });
    } else if constexpr (ListOfRecords<T>) {
        for (const Json& each : json)
            read(each, value.emplace_back());
    } else if constexpr (Of<T, Space>) {
        value = parse<Space>(json, kSpaces, "space");
    } else if constexpr (Of<T, Operation>) {
        value = parse<Operation>(json, kOperations, "operation");
    } else {
        value = json.get<T>();
    }
}

// What the library says of a key that is missing, or of a value of the wrong type, in the course's kind of exception.
template <class T>
T record_from(const Json& json) {
    try {
        T record;
        read(json, record);
        return record;
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
        // Of a kernel that failed the findings say more.
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
