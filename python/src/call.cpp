#include "call.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace course_python {
namespace {

std::mutex one_at_a_time;

}  // namespace

RegisteredMemory::RegisteredMemory(const std::deque<Tensor>& tensors) : alone_(one_at_a_time) {
    std::vector<Range> sorted;
    for (const Tensor& tensor : tensors) {
        const auto memory = tensor.memory();
        if (!memory.empty()) sorted.push_back({memory.data(), memory.data() + memory.size()});
    }
    std::sort(sorted.begin(), sorted.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
    for (const Range& range : sorted) {
        if (!ranges_.empty() && range.begin <= ranges_.back().end) {
            ranges_.back().end = std::max(ranges_.back().end, range.end);
        } else {
            ranges_.push_back(range);
        }
    }
    for (const auto& [begin, end] : ranges_)
        CUDA_CHECK(cudaHostRegister(begin, static_cast<std::size_t>(end - begin), cudaHostRegisterDefault));
}

RegisteredMemory::~RegisteredMemory() {
    for (const Range& range : ranges_)
        static_cast<void>(cudaHostUnregister(range.begin));
}

void Call::check() const {
    const Tensor& first = tensors_.front();
    if (first.on_gpu() && course::is_cpu_stand_in()) {
        first.refuse("on " + first.place(), "the CPU: this package was built without a GPU");
    }
    for (const Tensor& tensor : tensors_) {
        if (tensor.place() != first.place()) {
            tensor.refuse("on " + tensor.place(),
                          fmt::format("{}, where {} is", first.place(), first.name()));
        }
        for (const Tensor& other : tensors_) {
            if (tensor.access() == Access::kWrite && &other != &tensor &&
                course::overlap(tensor.memory(), other.memory())) {
                tensor.refuse("in the memory of " + other.name(), "memory of its own");
            }
        }
    }
}

}  // namespace course_python
