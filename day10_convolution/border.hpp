// What lies beyond the border of an image.
#pragma once

namespace day10 {

// The values outside the image, for the row a b c d:
//   kReplicate   a a a | a b c d | d d d
//   kReflect     d c b | a b c d | c b a     about the outermost value, which is not repeated; again and again if need be.
//                                            cv::BORDER_REFLECT_101, and PyTorch's 'reflect'
//   kConstant    v v v | a b c d | v v v     `value`
//   kWrap        b c d | a b c d | a b c
enum class BorderKind { kReplicate, kReflect, kConstant, kWrap };

struct Border {
    BorderKind kind = BorderKind::kReplicate;
    float value = 0;  // for kConstant
};

}  // namespace day10
