// verify() for results too many to be copied to the host for each version: the device compares, and
// what it finds the host looks at.
#pragma once

#include "common/check/verify.hpp"
#include "common/device/device_view.hpp"

namespace course {

// As verify(), with everything in device memory and a magnitude for each element. When the device
// finds an element that differs, all are copied to the host, and verify() has the last word. Waits
// for the device. Throws what verify() throws.
VerifyResult verify_on_device(DeviceSpan<const float> got, DeviceSpan<const double> expected,
                              const Bound& bound, DeviceSpan<const double> magnitude, std::size_t cols = 0);

// As verify_exact(), with both in device memory. T: an integer of 32 or 64 bits; or float, for sums
// that are exact in any order: then as verify() with a bound of 0. Waits for the device.
template <class T>
VerifyResult verify_exact_on_device(DeviceSpan<const T> got, DeviceSpan<const T> expected);

}  // namespace course
