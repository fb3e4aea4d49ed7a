#pragma once

namespace course::testing {

// Is the device code of a course_hopper_library compiled with Hopper's own instructions? Always
// true on the CPU stand-in.
bool built_for_hopper_alone();

}  // namespace course::testing
