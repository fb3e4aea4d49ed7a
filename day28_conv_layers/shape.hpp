// The shape of a convolutional layer, for host and device. The letters are those of cuDNN's manual.
#pragma once

namespace day28 {

struct Shape {
    int n = 1;        // images
    int c = 1;        // channels of an image
    int h = 1;        // rows of a channel
    int w = 1;        // columns of a channel
    int k = 1;        // filters: channels of the output
    int r = 1;        // rows of a filter
    int s = 1;        // columns of a filter
    int padding = 0;  // rows and columns of zeros on each of the four sides of an image
    int stride = 1;   // steps of a filter, along rows and columns

    // Rows and columns of the output: how often the filter fits into the padded image.
    constexpr int p() const { return (h + 2 * padding - r) / stride + 1; }
    constexpr int q() const { return (w + 2 * padding - s) / stride + 1; }

    // Elements of an image, of a filter, of an image of the output.
    constexpr int image() const { return c * h * w; }
    constexpr int filter() const { return c * r * s; }
    constexpr int plane() const { return p() * q(); }

    bool operator==(const Shape&) const = default;
};

}  // namespace day28
