// An inspection as JSON: writing and reading.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

#include "../include/cuda_on_cpu/inspection.h"

namespace cuda_on_cpu {

using Json = nlohmann::ordered_json;

// Names the fields of each record once: `visit(name, field)` writes or reads a field. For an
// optional field it returns whether the field exists.
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

template <Of<TraceStep> T, class Visit>
void fields(T& step, const Visit& visit) {
    visit("source", step.source);
    visit("kind", step.kind);
    visit("lanes", step.lanes);
    visit("repeats", step.repeats);
    visit("space", step.space);
    visit("bytes", step.bytes);
    visit("transactions", step.transactions);
    visit("ideal", step.ideal);
    visit("offsets", step.offsets);
    visit("array", step.array);
}

template <Of<WarpTrace> T, class Visit>
void fields(T& trace, const Visit& visit) {
    visit("block", trace.block);
    visit("warp", trace.warp);
    visit("steps", trace.steps);
    visit("recorded", trace.recorded);
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
    visit("trace", kernel.trace);
}

template <Of<Inspection> T, class Visit>
void fields(T& inspection, const Visit& visit) {
    visit("kernels", inspection.kernels);
    visit("awaited_copies", inspection.awaited_copies);
    visit("awaited_copy_bytes", inspection.awaited_copy_bytes);
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
concept OptionalRecord = requires(T& value) {
    value.has_value();
    value.emplace();
}
&&Record<typename T::value_type>;
template <class T>
concept ListOfRecords = Record<typename T::value_type>;

template <class Enumeration, std::size_t N>
Enumeration parse(const Json& json, const std::array<std::string_view, N>& names, const char* what) {
    const auto text = json.get<std::string>();
    const auto found = std::ranges::find(names, text);
    if (found == names.end()) throw std::invalid_argument("'" + text + "' is no " + what);
    return static_cast<Enumeration>(found - names.begin());
}

template <class T>
Json json_of(const T& value) {
    if constexpr (Record<T>) {
        Json json = Json::object();
        fields(value, [&]<class Field>(const char* key, const Field& field) {
            if constexpr (OptionalRecord<std::remove_const_t<Field>>) {
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
        return Of<T, Space> ? kSpaceNames[static_cast<std::size_t>(value)]
                            : kOperationNames[static_cast<std::size_t>(value)];
    } else {
        return value;
    }
}

template <class T>
void read_record(const Json& json, T& value) {
    if constexpr (Record<T>) {
        fields(value, [&]<class Field>(const char* key, Field& field) {
            if constexpr (OptionalRecord<Field>) {
                if (json.contains(key)) read_record(json.at(key), field.emplace());
                return field.has_value();
            } else {
                read_record(json.at(key), field);
                return true;
            }
        });
    } else if constexpr (ListOfRecords<T>) {
        for (const Json& each : json)
            read_record(each, value.emplace_back());
    } else if constexpr (Of<T, Space>) {
        value = parse<Space>(json, kSpaceNames, "space");
    } else if constexpr (Of<T, Operation>) {
        value = parse<Operation>(json, kOperationNames, "operation");
    } else {
        value = json.get<T>();
    }
}

}  // namespace cuda_on_cpu
