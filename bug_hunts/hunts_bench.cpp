// The program of the bug hunts: all of them, or the one named, verified and timed, or watched with
// --inspect.
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/bench/program.hpp"
#include "hunts.hpp"
#include "trial.hpp"

namespace {

// Each hunt has operands of its own, so each is a problem of its own.
course::Case make_case(const hunts::Hunt& hunt, const course::Dims& size) {
    if (size.size() != 2) throw std::invalid_argument("expected rows x columns, for example 300x500");
    const hunts::Shape problem{size[0], size[1]};
    const auto trial = std::make_shared<hunts::Trial>(hunt, problem, course::DataPattern::kSignedUniform);
    course::Case result{.problem = hunt.name + " " + std::to_string(size[0]) + "x" + std::to_string(size[1]),
                        .dtype = "float"};
    result.spoil = [trial] { trial->spoil(); };
    result.verify = [trial] { return trial->verify(); };
    result.contestants.push_back({.name = hunt.name,
                                  .launch = [trial](cudaStream_t stream) { trial->launch(stream); },
                                  .work = hunt.work(problem)});
    return result;
}

std::vector<std::function<course::Case(const course::Dims&)>> all_cases() {
    std::vector<std::function<course::Case(const course::Dims&)>> cases;
    for (const hunts::Hunt& hunt : hunts::hunts())
        cases.push_back([&hunt](const course::Dims& size) { return make_case(hunt, size); });
    return cases;
}

}  // namespace

int main(int argc, char** argv) {
    const course::Program program{.day = "bug_hunts",
                                  .title = "twenty-two small kernels; size: rows x columns",
                                  .default_size = {300, 500},
                                  .bench_sizes = {{300, 500}, {4096, 4096}},
                                  .make_cases = all_cases()};
    return course::run_program(program, argc, argv);
}
