// The questions of a day that ask for a prediction: the section "Predict" of its README. The
// grammar:
//
//     ## Predict
//     1. How many of a block's 256 threads add on the level with `stride` 32?
//        <details><summary>Answer</summary>**4**. Every 64th thread adds.</details>
//     2. Which version is the fastest: a) `shuffle`; b) `vectorised`?
//        <details><summary>Answer</summary>**b**. ...</details>
//
//     3. Which line of [`shuffle`](reduction.cuh) loads from global memory?
//        <details><summary>Answer</summary>**`sum += in[i];`**. ...</details>
//
// An answer begins with its key, in bold: a number, with a unit if it has one, a letter, or code.
// "about 12 µs" accepts what is up to 25 % off. Code stands in exactly one line of the function
// that the question names first; a reader types the number of that line.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace course::tool {

struct Question {
    std::string text;         // one paragraph, without its number
    std::string key;          // "4", "about 12 µs", "b", "`sum += in[i];`"
    std::string explanation;  // what follows the key
    std::string function;     // of a question about a line, else empty: "shuffle"
    std::string file;         // where it is, seen from the README: "reduction.cuh"
};

// The lines of the function that a question is about.
struct NumberedLines {
    int first = 0;  // the number of the first one in its file
    std::vector<std::string> texts;
    int right = 0;  // the number of the one that has the key
};

// An error in a README's questions. The message starts with file and line.
class QuestionError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

// The questions of `readme`, in order; none if it has no such section. `file` is for messages.
// Throws QuestionError.
std::vector<Question> parse_questions(std::string_view readme, std::string_view file);

// Of a question about a line: the lines from `source`, the text of its file. Throws QuestionError
// unless there is one such function, and one line of it has the key.
NumberedLines lines_of(const Question& question, std::string_view source);

// Is `answer`, as typed, right? Numbers are compared as such: 1024 and "1,024 threads" are equal.
// 12 and "12 us" are right where "12 µs" is, but not "12 ms". The key of a line is
// "line 8", for which 8 is right, too.
bool is_right(std::string_view answer, std::string_view key);

// What to type: "a number", "a letter", "the number of a line".
std::string expected_answer(std::string_view key);

}  // namespace course::tool
