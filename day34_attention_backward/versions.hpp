// The versions of tensor_cores.cu, and those of hopper.cu, which is compiled for compute capability
// 9.0a alone.
#pragma once

#include "attention_backward.hpp"

namespace day34 {

template <class T>
Version<T> tensor_cores();
template <class T>
Version<T> hopper();
template <class T>
Version<T> hopper_ordered();

}  // namespace day34
