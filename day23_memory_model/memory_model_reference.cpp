#include <omp.h>

#include <algorithm>
#include <vector>

#include "memory_model.hpp"

namespace day23 {
namespace {

Record record_of(std::span<const std::int32_t> in, std::size_t first, std::size_t end) {
    Record record{};
    for (std::size_t i = first; i < end; ++i)
        record = combined(record, {1, in[i], in[i], static_cast<long long>(i)});
    return record;
}

}  // namespace

Record record_on_cpu(std::span<const std::int32_t> in) {
    return record_of(in, 0, in.size());
}

Record record_on_all_cores(std::span<const std::int32_t> in) {
    const auto parts = static_cast<std::size_t>(omp_get_max_threads());
    std::vector<Record> records(parts);
#pragma omp parallel for
    for (std::size_t part = 0; part < parts; ++part)
        records[part] = record_of(in, in.size() * part / parts, in.size() * (part + 1) / parts);
    Record record{};
    for (const Record& of_part : records)
        record = combined(record, of_part);
    return record;
}

}  // namespace day23
