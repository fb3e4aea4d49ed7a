// The questions of a day that ask for a prediction: the section "Predict" of its README. The
// grammar:
//
//     ## Predict
//     1. How many of a block's 256 threads add on the level with `stride` 32?
//        <details><summary>Answer</summary>**4**. Every 64th thread adds.</details>
//     2. Which version is the fastest: a) `shuffle`; b) `vectorised`?
//        <details><summary>Answer</summary>**b**. ...</details>
//
// An answer begins with its key, in bold: a number, with a unit if it has one ("about 12 µs"
// accepts what is up to 25 % off), or a letter.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace course::tool {

struct Question {
    std::string text;         // one paragraph, without its number
    std::string key;          // "4", "about 12 µs", "b"
    std::string explanation;  // what follows the key
};

// An error in a README's questions. The message starts with file and line.
class QuestionError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

// The questions of `readme`, in order; none if it has no such section. `file` is for messages.
// Throws QuestionError.
std::vector<Question> parse_questions(std::string_view readme, std::string_view file);

// Is `answer`, as typed, right? Numbers are compared as such: 1024 and "1,024 threads" are equal.
// 12 and "12 us" are right where "12 µs" is, but not "12 ms".
bool is_right(std::string_view answer, std::string_view key);

// What to type: "a number", "a letter".
std::string expected_answer(std::string_view key);

}  // namespace course::tool
