#include "common/bench/draw.hpp"

#include <utility>

namespace course {
namespace {

bool is_prime(std::size_t n) {
    if (n < 4) return n > 1;
    if (n % 2 == 0) return false;
    for (std::size_t divisor = 3; divisor <= n / divisor; divisor += 2)
        if (n % divisor == 0) return false;
    return true;
}

bool exceeds(const std::vector<std::size_t>& extents, std::size_t limit) {
    std::size_t product = 1;
    for (const std::size_t extent : extents) {
        if (extent > limit / product) return true;
        product *= extent;
    }
    return false;
}

// Inputs and outputs of linear layers: GPT-2, BERT large, Llama 3 8B and 70B, Qwen 2.5 7B, ViT B
// and L. The rows of the product are tokens.
struct Layer {
    std::size_t in, out;
};
constexpr Layer kLinear[] = {{768, 2304},   {768, 3072},   {3072, 768},   {1024, 1024},  {1024, 4096},
                             {4096, 1024},  {4096, 6144},  {4096, 14336}, {14336, 4096}, {8192, 10240},
                             {8192, 28672}, {28672, 8192}, {3584, 18944}, {18944, 3584}};
// Convolutions of 1 x 1 of ResNet-50: pixels of an image, channels before and after.
struct Pointwise {
    std::size_t pixels, in, out;
};
constexpr Pointwise kPointwise[] = {{3136, 64, 64},  {3136, 64, 256},  {3136, 256, 64},  {784, 256, 512},
                                    {784, 512, 128}, {196, 1024, 256}, {196, 256, 1024}, {49, 512, 2048}};

}  // namespace

std::size_t Draw::uniform(std::size_t low, std::size_t high) {
    const std::uint64_t range = high - low;
    if (range == 0) return low;
    const int unused = std::countl_zero(range);
    std::uint64_t offset = 0;
    do {
        offset = random_.next() >> unused;
    } while (offset > range);
    return low + offset;
}

std::size_t Draw::log_uniform(std::size_t low, std::size_t high) {
    // A number that is uniform, or uniform between two powers of two, and a second draw that
    // accepts it with the probability of `certain` / number, which is at least a half.
    const bool is_narrow = high / 2 < low;
    const auto first = static_cast<std::size_t>(std::bit_width(low)) - 1;
    const auto last = static_cast<std::size_t>(std::bit_width(high)) - 1;
    while (true) {
        const std::size_t certain = is_narrow ? low : std::size_t{1} << uniform(first, last);
        const std::size_t number = uniform(certain, is_narrow ? high : certain + (certain - 1));
        if (number >= low && number <= high && uniform(0, number - 1) < certain) return number;
    }
}

std::size_t Draw::jittered(std::size_t n) {
    switch (uniform(0, 3)) {
        case 0:
            return n % 2 == 1 ? n : std::max<std::size_t>(n - 1, 1);
        case 1:
            for (std::size_t smaller = n; smaller > 1; --smaller)
                if (is_prime(smaller)) return smaller;
            return n;
        case 2: {
            const std::size_t step = std::size_t{1} << uniform(3, 9);
            return n >= step ? n / step * step : n;
        }
        default:
            return n;
    }
}

std::vector<std::size_t> Draw::fitted(std::vector<std::size_t> extents, std::size_t factor) const {
    while (exceeds(extents, std::max<std::size_t>(limit_ / factor, 1))) {
        std::size_t& largest = *std::ranges::max_element(extents);
        largest = largest / 2 | (largest & 1);
    }
    return extents;
}

DrawnSize draw_length(Draw& draw) {
    const std::size_t most = draw.limit();
    switch (draw.uniform(0, 3)) {
        case 0:
            return {"tiny", {draw.jittered(draw.log_uniform(1, std::min<std::size_t>(most, 1024)))}};
        case 1:
            return {"large", {draw.jittered(draw.log_uniform(std::max<std::size_t>(most / 16, 1), most))}};
        default:
            return {"any", {draw.jittered(draw.log_uniform(1, most))}};
    }
}

DrawnSize draw_matrix(Draw& draw) {
    const auto extent = [&](std::size_t low, std::size_t high) {
        return draw.jittered(draw.log_uniform(low, high));
    };
    DrawnSize drawn;
    switch (draw.uniform(0, 4)) {
        case 0:
            drawn = {"square", {extent(16, 16384)}};
            drawn.size.push_back(drawn.size[0]);
            break;
        case 1:
            drawn = {"few long rows", {extent(1, 64), extent(1 << 14, 1 << 22)}};
            break;
        case 2:
            drawn = {"many short rows", {extent(1 << 14, 1 << 22), extent(1, 64)}};
            break;
        case 3:
            drawn = {"odd", {extent(1, 8192) | 1, extent(1, 8192) | 1}};
            break;
        default:
            drawn = {"any", {extent(1, 1 << 17), extent(1, 1 << 17)}};
    }
    drawn.size = draw.fitted(drawn.size);
    return drawn;
}

DrawnSize draw_product(Draw& draw, std::size_t multiple) {
    const auto extent = [&](std::size_t low, std::size_t high) {
        return draw.jittered(draw.log_uniform(low, high));
    };
    DrawnSize drawn;
    switch (draw.uniform(0, 6)) {
        case 0: {
            const Layer layer = draw.one_of(kLinear);
            drawn = {"language layer", {extent(1, 8192), layer.out, layer.in}};
            break;
        }
        case 1: {
            const Pointwise layer = draw.one_of(kPointwise);
            drawn = {"vision layer", {draw.log_uniform(1, 64) * layer.pixels, layer.out, layer.in}};
            break;
        }
        case 2:
            drawn = {"thin with a deep K", {extent(1, 256), extent(1, 256), extent(4096, 1 << 17)}};
            break;
        case 3:
            drawn = {"skinny", {extent(512, 1 << 15), extent(1, 64), extent(64, 8192)}};
            if (draw.uniform(0, 1) == 1) std::swap(drawn.size[0], drawn.size[1]);
            break;
        case 4:
            drawn = {"tiny", {extent(1, 128), extent(1, 128), extent(1, 128)}};
            break;
        case 5:
            drawn = {"odd", {extent(65, 4097) | 1, extent(65, 4097) | 1, extent(65, 4097) | 1}};
            break;
        default:
            drawn = {"any", {extent(1, 8192), extent(1, 8192), extent(1, 8192)}};
    }
    for (std::size_t& n : drawn.size)
        n = std::max<std::size_t>(n / multiple, 1);
    drawn.size = draw.fitted(drawn.size, multiple * multiple * multiple);
    for (std::size_t& n : drawn.size)
        n *= multiple;
    return drawn;
}

DrawnSize draw_batch(Draw& draw) {
    const auto extent = [&](std::size_t low, std::size_t high) {
        return draw.jittered(draw.log_uniform(low, high));
    };
    DrawnSize drawn;
    switch (draw.uniform(0, 3)) {
        case 0: {
            const std::size_t tokens = extent(16, 4096);
            const auto dim = draw.one_of<std::size_t>({64, 80, 96, 128});
            // Q K^T, or P V.
            const bool scores = draw.uniform(0, 1) == 0;
            drawn = {"heads",
                     {draw.log_uniform(1, 512), tokens, scores ? tokens : dim, scores ? dim : tokens}};
            break;
        }
        case 1:
            drawn = {"many tiny",
                     {draw.log_uniform(256, 16384), extent(1, 32), extent(1, 32), extent(1, 32)}};
            break;
        case 2:
            drawn = {"odd",
                     {draw.log_uniform(2, 256), extent(3, 513) | 1, extent(3, 513) | 1, extent(3, 513) | 1}};
            break;
        default:
            drawn = {"any", {draw.log_uniform(1, 1024), extent(1, 2048), extent(1, 2048), extent(1, 2048)}};
    }
    drawn.size = draw.fitted(drawn.size);
    return drawn;
}

DrawnSize draw_attention(Draw& draw) {
    const auto dim = draw.one_of<std::size_t>({64, 64, 80, 96, 128, 128});
    const auto heads = draw.one_of<std::size_t>({1, 4, 8, 12, 16, 25, 32, 64});
    DrawnSize drawn;
    switch (draw.uniform(0, 2)) {
        case 0:
            drawn = {"short sequences",
                     {draw.log_uniform(1, 256), heads, draw.jittered(draw.log_uniform(1, 512)), dim}};
            break;
        case 1:
            drawn = {"one long sequence", {1, heads, draw.jittered(draw.log_uniform(2048, 1 << 15)), dim}};
            break;
        default:
            drawn = {"any", {draw.log_uniform(1, 32), heads, draw.jittered(draw.log_uniform(1, 8192)), dim}};
    }
    // First fewer sequences, then fewer heads, then shorter ones.
    std::size_t& tokens = drawn.size[2];
    while (exceeds({drawn.size[0], drawn.size[1], tokens, tokens, dim}, draw.limit()) &&
           drawn.size[0] * drawn.size[1] * tokens > 1) {
        std::size_t& largest = drawn.size[0] > 1 ? drawn.size[0] : drawn.size[1] > 1 ? drawn.size[1] : tokens;
        largest = largest / 2 | (&largest == &tokens ? largest & 1 : 0);
    }
    return drawn;
}

}  // namespace course
