#pragma once

namespace course::testing {

// Does device code of a course_hopper_library see Hopper's own instructions? On the CPU stand-in:
// yes, as everywhere.
bool built_for_hopper_alone();

}  // namespace course::testing
