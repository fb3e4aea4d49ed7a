// Day 28, beyond: where the elements of a filter are in an image.
#pragma once

namespace day28 {

// Element (c, r, s) of a filter, relative to the first element under the filter: `offset` elements
// after it, r rows below it and s columns to the right.
struct alignas(16) Tap {
    int offset;
    int r;
    int s;
    int unused;
};

constexpr int kNowhere = -(1 << 28);  // a row that no image has, whatever is added to it

}  // namespace day28
