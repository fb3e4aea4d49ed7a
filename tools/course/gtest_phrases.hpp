// GoogleTest's phrases in the words of a lesson: "sum is 3; expected 4".
#pragma once

#include <string>

namespace course::tool {

// `message` is what one EXPECT or ASSERT printed, without the line that says where. What the test's
// author has added stays.
std::string in_plain_words(const std::string& message);

}  // namespace course::tool
