#include "digits.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "common/device/random.hpp"

namespace day33 {
namespace {

struct Point {
    double x;  // 0 is left, 1 is right
    double y;  // 0 is the top, 1 the bottom
};
using Stroke = std::vector<Point>;

// A part of an ellipse: angles in quarter turns, 0 is right and 1 is down.
Stroke arc(Point centre, double width, double height, double from, double to) {
    constexpr int kParts = 12;
    Stroke stroke;
    for (int i = 0; i <= kParts; ++i) {
        const double angle = (from + (to - from) * i / kParts) * std::numbers::pi / 2;
        stroke.push_back({centre.x + width / 2 * std::cos(angle), centre.y + height / 2 * std::sin(angle)});
    }
    return stroke;
}

std::vector<Stroke> strokes_of(int digit) {
    switch (digit) {
        case 0:
            return {arc({0.5, 0.5}, 0.6, 1, 0, 4)};
        case 1:
            return {{{0.3, 0.2}, {0.55, 0}, {0.55, 1}}};
        case 2:
            return {arc({0.5, 0.28}, 0.6, 0.56, 2, 4.6), {{0.72, 0.48}, {0.2, 1}, {0.82, 1}}};
        case 3:
            return {arc({0.48, 0.25}, 0.55, 0.5, 2.2, 5), arc({0.48, 0.75}, 0.62, 0.5, -1, 1.8)};
        case 4:
            return {{{0.65, 1}, {0.65, 0}, {0.15, 0.7}, {0.85, 0.7}}};
        case 5:
            return {{{0.78, 0}, {0.28, 0}, {0.24, 0.45}}, arc({0.48, 0.69}, 0.6, 0.62, -1.8, 1.8)};
        case 6:
            return {arc({0.62, 0.6}, 0.8, 1.2, 2, 3.2), arc({0.5, 0.7}, 0.56, 0.6, 0, 4)};
        case 7:
            return {{{0.18, 0}, {0.82, 0}, {0.4, 1}}};
        case 8:
            return {arc({0.5, 0.25}, 0.5, 0.5, 0, 4), arc({0.5, 0.75}, 0.6, 0.5, 0, 4)};
        default:
            return {arc({0.5, 0.3}, 0.56, 0.6, 0, 4), {{0.78, 0.3}, {0.74, 0.7}, {0.55, 1}}};
    }
}

double distance_to(const Point& a, const Point& b, double x, double y) {
    const double dx = b.x - a.x;
    const double dy = b.y - a.y;
    const double along =
        std::clamp(((x - a.x) * dx + (y - a.y) * dy) / std::max(dx * dx + dy * dy, 1e-12), 0.0, 1.0);
    return std::hypot(x - a.x - along * dx, y - a.y - along * dy);
}

void draw(int digit, course::Random random, float* picture) {
    const auto between = [&](double low, double high) {
        return static_cast<double>(random.uniform(static_cast<float>(low), static_cast<float>(high)));
    };
    const double turn = between(-0.25, 0.25);  // radians
    const double slant = between(-0.2, 0.2);
    const double width = between(13, 19);  // of a digit, in pixels
    const double height = between(16, 21);
    const double right = between(-2.5, 2.5);
    const double down = between(-2.5, 2.5);
    const double thickness = between(0.8, 1.7);  // half of a stroke's
    const double ink = between(0.75, 1);
    const double noise = between(0.02, 0.15);

    std::vector<Stroke> strokes = strokes_of(digit);
    const double bend = between(-0.05, 0.05);
    for (Stroke& stroke : strokes)
        for (Point& point : stroke) {
            const double x = (point.x - 0.5 + bend * std::sin(3 * point.y) + between(-0.015, 0.015)) * width +
                             slant * (0.5 - point.y) * height;
            const double y = (point.y - 0.5 + between(-0.015, 0.015)) * height;
            point = {kDigitSide / 2.0 + right + x * std::cos(turn) - y * std::sin(turn),
                     kDigitSide / 2.0 + down + x * std::sin(turn) + y * std::cos(turn)};
        }
    for (int row = 0; row < kDigitSide; ++row)
        for (int col = 0; col < kDigitSide; ++col) {
            double nearest = kDigitSide;
            for (const Stroke& stroke : strokes)
                for (std::size_t i = 0; i + 1 < stroke.size(); ++i)
                    nearest = std::min(nearest, distance_to(stroke[i], stroke[i + 1], col + 0.5, row + 0.5));
            const double value =
                ink * std::clamp(thickness + 0.5 - nearest, 0.0, 1.0) + between(-noise, noise);
            picture[row * kDigitSide + col] = static_cast<float>(value);
        }
}

}  // namespace

Digits draw_digits(std::size_t count, std::uint64_t seed) {
    constexpr std::uint64_t kDrawsOfPicture = 4096;  // of random numbers, at most
    Digits digits{std::vector<float>(count * kPixels), std::vector<int>(count)};
#pragma omp parallel for
    for (std::size_t i = 0; i < count; ++i) {
        course::Random random(seed, i * kDrawsOfPicture);
        digits.labels[i] = static_cast<int>(random.below(10));
        draw(digits.labels[i], random, digits.pictures.data() + i * kPixels);
    }
    return digits;
}

}  // namespace day33
