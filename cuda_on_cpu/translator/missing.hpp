// What a program needs and does not find, in one sentence for the first line of the errors.
#pragma once

#include <string>
#include <string_view>

namespace translator {

// From the compiler's errors: "a.cu:3: error: <cudnn.h> is of cuDNN, which ...", or empty if they
// name no header and no function of a library that is known not to be here.
std::string about_missing(std::string_view errors);

}  // namespace translator
