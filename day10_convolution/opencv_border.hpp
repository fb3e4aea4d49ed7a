// OpenCV's name of a border, for the test and the program.
#pragma once

#include <opencv2/core.hpp>

#include "convolution.hpp"

namespace day10 {

inline int opencv_border(BorderKind kind) {
    switch (kind) {
        case BorderKind::kReplicate:
            return cv::BORDER_REPLICATE;
        case BorderKind::kReflect:
            return cv::BORDER_REFLECT_101;
        case BorderKind::kConstant:
            return cv::BORDER_CONSTANT;
        default:
            return cv::BORDER_WRAP;
    }
}

}  // namespace day10
