// Starts other programs and waits for them: arguments go to them as they are, without a shell.
#pragma once

#include <sys/types.h>

#include <array>
#include <csignal>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cuda_on_cpu {

// Where its standard error output goes.
enum class Errors { own, with_output, nowhere };

struct ChildProgram {
    std::vector<std::string> arguments;   // the first is the program, looked up in PATH if it has no slash
    std::vector<std::string> settings{};  // "NAME=VALUE" each, in place of this process's own
    std::string input_file{};             // else this process's own input
    std::optional<int> output{};          // the same of its output
    Errors errors = Errors::own;
    bool own_group = false;                     // which can be ended whole, with what it starts itself
    const sigset_t* default_signals = nullptr;  // those that it should not ignore
    const sigset_t* blocked_signals = nullptr;  // if others than this process's
};

// Sets `child`. Returns 0, or the error number when the program cannot be started.
int start_child(const ChildProgram& program, pid_t& child);

// The exit code of a child that has ended, 128 + n when signal n ended it. Of one that runs:
// nothing.
std::optional<int> exit_code_if_ended(pid_t child);
int wait_for_child(pid_t child);

// A pipe for what a child prints. The child gets only what its ChildProgram names.
class OutputPipe {
  public:
    OutputPipe();  // throws std::system_error
    ~OutputPipe();
    OutputPipe(const OutputPipe&) = delete;
    OutputPipe& operator=(const OutputPipe&) = delete;

    int reading_end() const { return ends_[0]; }
    int writing_end() const { return ends_[1]; }
    // Until it is closed here, too, there is no end to read.
    void close_writing_end();
    // What there is next, which may take time; empty at the end.
    std::string_view read_some();

  private:
    std::array<int, 2> ends_{-1, -1};
    std::array<char, 4096> buffer_{};
};

struct ChildResult {
    int error = 0;  // the program could not be started: why
    int exit_code = 127;
    std::string output{};  // of read_child
};

ChildResult run_child(const ChildProgram& program);
// Keeps what it writes to its standard output.
ChildResult read_child(const ChildProgram& program);

}  // namespace cuda_on_cpu
