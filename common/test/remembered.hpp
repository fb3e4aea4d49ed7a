// Expected values that the tests of many versions share. A reference in double on the host takes
// far longer than the kernel under test, and each version is tested with the same problems.
#pragma once

#include <algorithm>
#include <cstddef>
#include <list>
#include <span>
#include <utility>
#include <vector>

namespace course {

struct ReferenceProduct {
    std::vector<double> product, magnitude;
};

class RememberedProducts {
  public:
    // Returns compute(), or its earlier result for equal inputs. Inputs are compared byte by byte,
    // so different data can never share a result. The returned reference is valid until the next
    // call.
    template <class Compute>
    const ReferenceProduct& operator()(std::vector<std::byte> inputs, const Compute& compute) {
        const auto known = std::ranges::find(entries_, inputs, &Entry::inputs);
        if (known != entries_.end()) return known->reference;
        Entry entry{std::move(inputs), compute()};
        if (bytes_ + entry.bytes() > kMaxBytes) {
            entries_.clear();
            bytes_ = 0;
        }
        bytes_ += entry.bytes();
        return entries_.emplace_back(std::move(entry)).reference;
    }

  private:
    static constexpr std::size_t kMaxBytes = std::size_t{4} << 30;
    struct Entry {
        std::vector<std::byte> inputs;
        ReferenceProduct reference;
        std::size_t bytes() const {
            return inputs.size() + sizeof(double) * (reference.product.size() + reference.magnitude.size());
        }
    };

    std::list<Entry> entries_;
    std::size_t bytes_ = 0;
};

// The bytes of numbers, of plain structs without padding, and of vectors of these.
template <class... Part>
std::vector<std::byte> bytes_of(const Part&... parts) {
    std::vector<std::byte> bytes;
    const auto append = [&](const auto& part) {
        const auto of = [&](const auto& elements) {
            const auto raw = std::as_bytes(elements);
            bytes.insert(bytes.end(), raw.begin(), raw.end());
        };
        if constexpr (requires { part.data(); }) {
            of(std::span(part.data(), part.size()));
        } else {
            of(std::span(&part, 1));
        }
    };
    (append(parts), ...);
    return bytes;
}

}  // namespace course
