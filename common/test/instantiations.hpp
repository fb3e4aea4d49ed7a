// Templates that most tests use, compiled once in instantiations.cpp instead of in every test.
// They take a sixth of a test's compile time.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

#ifndef COURSE_INSTANTIATE
#define COURSE_INSTANTIATE extern
#endif

COURSE_INSTANTIATE template class std::basic_string<char>;
COURSE_INSTANTIATE template class std::vector<int>;
COURSE_INSTANTIATE template class std::vector<unsigned>;
COURSE_INSTANTIATE template class std::vector<std::size_t>;
COURSE_INSTANTIATE template class std::vector<float>;
COURSE_INSTANTIATE template class std::vector<double>;
COURSE_INSTANTIATE template class std::vector<std::string>;

namespace testing {

COURSE_INSTANTIATE template std::string PrintToString(const bool&);
COURSE_INSTANTIATE template std::string PrintToString(const int&);
COURSE_INSTANTIATE template std::string PrintToString(const unsigned&);
COURSE_INSTANTIATE template std::string PrintToString(const std::size_t&);
COURSE_INSTANTIATE template std::string PrintToString(const float&);
COURSE_INSTANTIATE template std::string PrintToString(const double&);
COURSE_INSTANTIATE template std::string PrintToString(const std::string&);

namespace internal {

COURSE_INSTANTIATE template AssertionResult CmpHelperEQ(const char*, const char*, const int&, const int&);
COURSE_INSTANTIATE template AssertionResult CmpHelperEQ(const char*, const char*, const unsigned&,
                                                        const unsigned&);
COURSE_INSTANTIATE template AssertionResult CmpHelperEQ(const char*, const char*, const std::size_t&,
                                                        const std::size_t&);
COURSE_INSTANTIATE template AssertionResult CmpHelperEQ(const char*, const char*, const float&, const float&);
COURSE_INSTANTIATE template AssertionResult CmpHelperEQ(const char*, const char*, const std::string&,
                                                        const std::string&);

}  // namespace internal
}  // namespace testing
