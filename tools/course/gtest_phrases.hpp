// GoogleTest's phrases in the words of a lesson: "sum is 3; expected 4". All that is known of them
// stands here.
#pragma once

#include <string>

namespace course::tool {

// `message` is that of one EXPECT or ASSERT, or of an exception. What the test's author has added
// stays; what frames it is left out.
std::string in_plain_words(const std::string& message);

}  // namespace course::tool
