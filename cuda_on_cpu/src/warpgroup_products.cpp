#include "warpgroup_products.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "memory.hpp"
#include "report_text.hpp"
#include "tensor_map.hpp"

namespace cuda_on_cpu {
namespace {

// PTX ISA, "Matrix Descriptor Format" of wgmma.
struct Descriptor {
    std::uintptr_t address;
    std::size_t leading;  // bytes
    std::size_t stride;
    unsigned base_offset;
    unsigned span;  // of the swizzle, in bytes; 16: none

    explicit Descriptor(std::uint64_t bits)
        : address((bits & 0x3fff) << 4),
          leading((bits >> 16 & 0x3fff) << 4),
          stride((bits >> 32 & 0x3fff) << 4),
          base_offset(static_cast<unsigned>(bits >> 49 & 7)),
          span(256u >> (bits >> 62)) {  // 1: 128 bytes, 2: 64, 3: 32
        if (span == 256) span = 16;
    }

    // The address of 16 bytes of consecutive elements: "Strides" of the canonical layouts. `piece`
    // counts in the contiguous direction.
    std::uintptr_t of_k_major(unsigned mn, unsigned piece) const {
        const std::size_t along = piece * (span == 16 ? leading : 16);
        return swizzled(address + mn / 8 * stride + mn % 8 * span + along, span);
    }
    std::uintptr_t of_mn_major(unsigned k, unsigned piece) const {
        const unsigned pieces = span / 16;  // in a span
        const std::size_t further_k = k / 8 * (span == 16 ? leading : stride);
        const std::size_t further_mn = piece / pieces * (span == 16 ? stride : leading);
        return swizzled(address + further_k + further_mn + k % 8 * span + piece % pieces * 16, span);
    }
};

constexpr auto kPoisonedRegisters = [] {
    std::array<std::uint32_t, 128> bits{};
    bits.fill(0xffffffffu);
    return bits;
}();

// Sixteen bytes of shared memory that are uninitialised, or that a bulk copy will write.
constexpr auto kUnwritten = [] {
    std::array<std::uint16_t, 8> words{};
    words.fill(kSharedPoison);
    return std::bit_cast<std::array<unsigned char, 16>>(words);
}();

constexpr auto kSumsWritten =
    "registers were written while a product summed in them: wgmma.wait_group is missing";

// Register 4 j + 2 h + i of lane 4 g + t: row 8 h + g, column 8 j + 2 t + i.
unsigned place_of(unsigned lane, unsigned r, unsigned columns) {
    return (r / 2 % 2 * 8 + lane / 4) * columns + r / 4 * 8 + lane % 4 * 2 + r % 2;
}

// The value of a thread's register, possibly after its scope has ended.
__attribute__((no_sanitize("address"))) std::uint32_t word_at(const void* place) {
    return *static_cast<const volatile std::uint32_t*>(place);
}

// The value of an accumulator register.
double number_of(std::uint32_t bits, bool integer) {
    return integer ? static_cast<double>(static_cast<std::int32_t>(bits))
                   : static_cast<double>(std::bit_cast<float>(bits));
}
std::uint32_t bits_of(double sum, bool integer) {
    return integer ? static_cast<std::uint32_t>(static_cast<std::int64_t>(sum))
                   : std::bit_cast<std::uint32_t>(static_cast<float>(sum));
}

}  // namespace

void WarpgroupProducts::begin_block(const char* window, const char* begin, const char* end, unsigned warps) {
    window_ = window;
    begin_ = begin;
    end_ = end;
    warps_.clear();
    warps_.resize(warps);
    warpgroups_.clear();
    warpgroups_.resize((warps + 3) / 4);
    waiting_ = 0;
    fences_ = 0;
    known_.assign(static_cast<std::size_t>(end - begin + kPiece - 1) / kPiece, {kUnwritten, 0});
}

// Registers that earlier MMAs have used must not change between this fence and the next MMA. They
// may belong to arrays whose scope has ended; then their contents do not matter, but reading them
// is harmless.
void WarpgroupProducts::fence(unsigned number) {
    Warp& warp = warps_[number];
    warp.fenced = warp.ever_fenced = true;
    for (Sums& sums : warp.sums) {
        if (sums.under_way > 0) continue;
        for (unsigned lane = 0; lane < 32; ++lane) {
            for (unsigned r = 0; r < sums.count; ++r)
                sums.values[place_of(lane, r, 2 * sums.count)] = word_at(sums.registers[lane] + r * kWord);
        }
    }
    for (auto& [first, left] : warp.left) {
        for (unsigned lane = 0; lane < 32; ++lane) {
            for (unsigned r = 0; r < 4; ++r)
                left.values[lane][r] = word_at(left.registers[lane] + r);
        }
    }
}

std::string WarpgroupProducts::issue(unsigned number, const Lanes& lanes) {
    Warp& warp = warps_[number];
    const auto& first = lanes.at<Operands>(0);
    for (unsigned lane = 1; lane < 32; ++lane) {
        const auto& other = lanes.at<Operands>(lane);
        if (other.a != first.a || other.b != first.b || !other.a_registers != !first.a_registers)
            return "the lanes of a warp have passed different descriptors";
    }
    if (!warp.ever_fenced) return "no wgmma.fence before the first product";
    if (number / 4 * 4 + 4 > warps_.size())
        return "the block ends within this warpgroup: it needs four warps";

    auto sums = std::find_if(warp.sums.begin(), warp.sums.end(), [&](const Sums& one) {
        return one.registers[0] == first.d && one.count == first.registers;
    });
    const bool known = sums != warp.sums.end();
    if (!known) {
        if (!warp.fenced) return "these registers were written after the last wgmma.fence";
        sums = warp.sums.emplace(warp.sums.end());
        sums->count = first.registers;
        sums->values.resize(kRows * 2 * first.registers);
    }
    for (unsigned lane = 0; lane < 32; ++lane) {
        char* const d = lanes.at<Operands>(lane).d;
        const std::size_t bytes = sums->count * kWord;
        sums->registers[lane] = d;
        if (sums->under_way > 0) {
            if (std::memcmp(d, kPoisonedRegisters.data(), bytes) != 0) return kSumsWritten;
            continue;
        }
        const bool cleared = std::all_of(d, d + bytes, [](char byte) { return byte == 0; });
        for (unsigned r = 0; r < sums->count; ++r) {
            std::uint32_t& aside = sums->values[place_of(lane, r, 2 * sums->count)];
            // D = A B, without accumulation, starts from zeros, which this model writes and no
            // thread does.
            if (known && !(cleared && warp.fenced) && std::memcmp(&aside, d + r * kWord, kWord) != 0)
                return "registers were written after the last wgmma.fence";
            std::memcpy(&aside, d + r * kWord, kWord);
        }
        std::memset(d, kPoison, bytes);
    }
    std::shared_ptr<LeftOperand> left;
    if (first.a_registers != nullptr) {
        if (!warp.fenced) return "A is in registers: expected a wgmma.fence after they were written";
        left = std::make_shared<LeftOperand>();
        for (unsigned lane = 0; lane < 32; ++lane) {
            left->registers[lane] = lanes.at<Operands>(lane).a_registers;
            std::memcpy(left->values[lane].data(), left->registers[lane], 4 * kWord);
        }
        const auto [before, is_new] = warp.left.try_emplace(first.a_registers, *left);
        if (!is_new && before->second.registers == left->registers && before->second.values != left->values)
            return "registers of A were written after the last wgmma.fence";
        before->second = *left;
    }
    Warpgroup& warpgroup = warpgroups_[number / 4];
    if (warp.started() == warpgroup.computed + warpgroup.issued.size()) {
        if (std::string error = gather(first, warpgroup.issued.emplace_back()); !error.empty()) return error;
        if (misses_fence(first))
            return "threads have written an operand to shared memory: expected a fence.proxy.async of theirs "
                   "before the barrier";
    }
    ++sums->under_way;
    warp.products.push_back({&*sums, first, warp.group, std::move(left)});
    return "";
}

// The number of the first MMA that may stay pending.
std::uint64_t WarpgroupProducts::end_of_wait(const Warp& warp, unsigned pending) const {
    const auto stays = [&](const Product& product) { return product.group + pending >= warp.group; };
    return warp.first +
           static_cast<std::uint64_t>(std::find_if(warp.products.begin(), warp.products.end(), stays) -
                                      warp.products.begin());
}

bool WarpgroupProducts::begin_wait(unsigned number, unsigned pending) {
    Warp& warp = warps_[number];
    if (warp.waits || end_of_wait(warp, pending) <= warpgroups_[number / 4].computed) return false;
    warp.waits = true;
    warp.waits_pending = pending;
    ++waiting_;
    return true;
}

void WarpgroupProducts::end_wait(unsigned number) {
    warps_[number].waits = false;
    --waiting_;
}

bool WarpgroupProducts::can_end_wait(unsigned number) const {
    if (!warps_[number].waits) return false;
    const std::uint64_t end = end_of_wait(warps_[number], warps_[number].waits_pending);
    for (unsigned w = number / 4 * 4; w < std::min<std::size_t>(number / 4 * 4 + 4, warps_.size()); ++w) {
        if (warps_[w].started() < end) return false;
    }
    return true;
}

std::string WarpgroupProducts::wait(unsigned number, unsigned pending) {
    Warp& warp = warps_[number];
    warp.fenced = false;
    const std::uint64_t end = end_of_wait(warp, pending);
    while (warpgroups_[number / 4].computed < end) {
        if (std::string error = compute(number / 4); !error.empty()) return error;
    }
    for (; warp.first < end; ++warp.first) {
        Sums& sums = *warp.products.front().sums;
        const std::shared_ptr<LeftOperand> left = std::move(warp.products.front().left);
        warp.products.pop_front();
        for (unsigned lane = 0; left != nullptr && lane < 32; ++lane) {
            if (std::memcmp(left->values[lane].data(), left->registers[lane], 4 * kWord) != 0)
                return "registers of A were written before the product was waited for: wgmma.wait_group is "
                       "missing";
        }
        if (--sums.under_way > 0) continue;
        for (unsigned lane = 0; lane < 32; ++lane) {
            if (std::memcmp(sums.registers[lane], kPoisonedRegisters.data(), sums.count * kWord) != 0)
                return kSumsWritten;
            for (unsigned r = 0; r < sums.count; ++r)
                std::memcpy(sums.registers[lane] + r * kWord, &sums.values[place_of(lane, r, 2 * sums.count)],
                            kWord);
        }
    }
    return "";
}

const char* WarpgroupProducts::find(std::uintptr_t address) const {
    const char* const place = window_ + address;
    return place >= begin_ && place + kPiece <= end_ ? place : nullptr;
}

// Calls put(address) for each 16 bytes of the operands in shared memory: A, then B.
template <class Put>
void WarpgroupProducts::for_pieces(const Operands& operands, const Put& put) {
    const ProductOf& product = operands.product;
    const unsigned in_piece = kPiece / product.element_size;
    const auto put_all = [&](const Descriptor& operand, unsigned lines, bool mn_major) {
        if (mn_major) {
            for (unsigned k = 0; k < 2 * in_piece; ++k) {
                for (unsigned piece = 0; piece < lines / in_piece; ++piece)
                    put(operand.of_mn_major(k, piece));
            }
        } else {
            for (unsigned line = 0; line < lines; ++line) {
                put(operand.of_k_major(line, 0));
                put(operand.of_k_major(line, 1));
            }
        }
    };
    if (operands.a_registers == nullptr) put_all(Descriptor(operands.a), 4 * kRows, product.a_column_major);
    put_all(Descriptor(operands.b), 2 * operands.registers, product.b_row_major);
}

std::string WarpgroupProducts::gather(const Operands& operands, OperandBytes& bytes) const {
    if (Descriptor(operands.a).base_offset != 0 || Descriptor(operands.b).base_offset != 0)
        return "a descriptor with a base offset is not modelled: begin at a multiple of what the swizzle "
               "repeats after";
    const bool shared_a = operands.a_registers == nullptr;
    bytes.resize(((shared_a ? 4 * kRows : 0) + 2 * operands.registers) * 2 * kPiece);
    unsigned char* to = bytes.data();
    bool outside = false;
    for_pieces(operands, [&](std::uintptr_t address) {
        if (const char* const place = find(address); place != nullptr) {
            std::memcpy(to, place, kPiece);
        } else {
            outside = true;
        }
        to += kPiece;
    });
    return outside ? "a descriptor leads outside the block's dynamic shared memory" : "";
}

// Has a thread changed an operand since an MMA or a bulk copy last accessed it, without a
// fence.proxy.async since then?
bool WarpgroupProducts::misses_fence(const Operands& operands) {
    bool misses = false;
    for_pieces(operands, [&](std::uintptr_t address) {
        const char* const place = find(address);
        Known& known = known_[static_cast<std::size_t>(place - begin_) / kPiece];
        misses |= known.fences == fences_ && std::memcmp(known.bytes.data(), place, kPiece) != 0 &&
                  std::memcmp(kUnwritten.data(), place, kPiece) != 0;
        std::memcpy(known.bytes.data(), place, kPiece);
        known.fences = fences_;
    });
    return misses;
}

void WarpgroupProducts::loaded(const void* shared, std::size_t bytes) {
    const char* const place = static_cast<const char*>(shared);
    if (place < begin_ || place + bytes > end_) return;
    for (std::size_t i = 0; i + kPiece <= bytes; i += kPiece) {
        Known& known = known_[static_cast<std::size_t>(place + i - begin_) / kPiece];
        std::memcpy(known.bytes.data(), place + i, kPiece);
        known.fences = fences_;
    }
}

// Computes the next MMA: exact products, summed in double and rounded once, or wrapped.
std::string WarpgroupProducts::compute(unsigned number) {
    Warpgroup& warpgroup = warpgroups_[number];
    const auto product_of = [&](unsigned w) -> const Product& {
        const Warp& warp = warps_[number * 4 + w];
        return warp.products[warpgroup.computed - warp.first];
    };
    const Operands& operands = product_of(0).operands;
    for (unsigned w = 1; w < 4; ++w) {
        const Operands& other = product_of(w).operands;
        if (other.a != operands.a || other.b != operands.b || other.registers != operands.registers ||
            !other.a_registers != !operands.a_registers || other.product != operands.product)
            return "the warps of a warpgroup have started different products: other descriptors, or another "
                   "N";
    }
    if (std::string error = gather(operands, now_); !error.empty()) return error;
    if (now_ != warpgroup.issued.front())
        return "shared memory was written while a product read it: that of " + place(operands.site) +
               ". Data must have arrived before a warp issues it, and stay until wgmma.wait_group";
    const ProductOf& product = operands.product;
    const unsigned columns = 2 * operands.registers;
    const unsigned in_piece = kPiece / product.element_size;
    const unsigned depth = 2 * in_piece;
    bool finite = true;
    const unsigned char* from = now_.data();
    const auto read = [&](const auto& put) {
        for (unsigned e = 0; e < in_piece; ++e) {
            std::uint32_t bits = 0;  // the lowest byte comes first on all processors that this runs on
            std::memcpy(&bits, from + e * product.element_size, product.element_size);
            const double value = static_cast<double>(product.decode(bits));
            finite = finite && std::isfinite(value);
            put(e, value);
        }
        from += kPiece;
    };
    // In the order in which gather() has written them.
    const auto read_all = [&](unsigned lines, bool mn_major, const auto& put) {
        const unsigned outer = mn_major ? depth : lines;
        const unsigned pieces = mn_major ? lines / in_piece : 2;
        for (unsigned i = 0; i < outer; ++i) {
            for (unsigned piece = 0; piece < pieces; ++piece)
                read([&](unsigned e, double value) { put(i, in_piece * piece + e, value); });
        }
    };
    if (operands.a_registers != nullptr) {
        // Register 2 j + h of lane 4 g + t: row 8 h + g, bytes 16 j + 4 t to 16 j + 4 t + 3.
        const unsigned mask = ~0u >> (32 - 8 * product.element_size);
        for (unsigned row = 0; row < 4 * kRows; ++row) {
            const LeftOperand& left = *product_of(row / kRows).left;
            for (unsigned k = 0; k < depth; ++k) {
                const unsigned byte = k * product.element_size;
                const unsigned bits =
                    left.values[row % 8 * 4 + byte % 16 / 4][byte / 16 * 2 + row % kRows / 8];
                a_[row][k] = static_cast<double>(product.decode(bits >> byte % 4 * 8 & mask));
                finite = finite && std::isfinite(a_[row][k]);
            }
        }
    } else if (product.a_column_major) {
        read_all(4 * kRows, true, [&](unsigned k, unsigned m, double value) { a_[m][k] = value; });
    } else {
        read_all(4 * kRows, false, [&](unsigned m, unsigned k, double value) { a_[m][k] = value; });
    }
    if (product.b_row_major) {
        read_all(columns, true, [&](unsigned k, unsigned n, double value) { b_[k][n] = value; });
    } else {
        read_all(columns, false, [&](unsigned n, unsigned k, double value) { b_[k][n] = value; });
    }
    // If all values are finite, rows of A and groups of eight columns of B that are zero add
    // nothing and are skipped. Zero-filled out-of-range elements often give such rows and columns.
    constexpr unsigned kEight = 8;
    std::array<bool, kMostColumns / kEight> counts{};
    for (unsigned n = 0; n < columns; ++n) {
        for (unsigned k = 0; k < depth; ++k)
            counts[n / kEight] |= !finite || b_[k][n] != 0;
    }
    for (unsigned row = 0; row < 4 * kRows; ++row) {
        if (finite && std::all_of(a_[row], a_[row] + depth, [](double value) { return value == 0; }))
            continue;
        std::uint32_t* const sums = product_of(row / kRows).sums->values.data() + row % kRows * columns;
        for (unsigned first = 0; first < columns; first += kEight) {
            if (!counts[first / kEight]) continue;
            double exact[kEight];
            for (unsigned n = 0; n < kEight; ++n)
                exact[n] = number_of(sums[first + n], product.integers);
            for (unsigned k = 0; k < depth; ++k) {
                for (unsigned n = 0; n < kEight; ++n)
                    exact[n] += a_[row][k] * b_[k][first + n];
            }
            for (unsigned n = 0; n < kEight; ++n)
                sums[first + n] = bits_of(exact[n], product.integers);
        }
    }
    warpgroup.issued.pop_front();
    ++warpgroup.computed;
    return "";
}

std::string WarpgroupProducts::end_block() const {
    for (unsigned w = 0; w < warps_.size(); ++w) {
        const std::uint64_t first = warps_[w / 4 * 4].started();
        if (warps_[w].started() != first)
            return "warp " + std::to_string(w) + " has started " + std::to_string(warps_[w].started()) +
                   " wgmma, the first of its warpgroup " + std::to_string(first);
    }
    return "";
}

}  // namespace cuda_on_cpu
