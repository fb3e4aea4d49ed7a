#include "current_device.hpp"

namespace cuda_on_cpu {

int device_count() {
    static const int count = static_cast<int>(environment().devices);
    return count;
}

}  // namespace cuda_on_cpu
