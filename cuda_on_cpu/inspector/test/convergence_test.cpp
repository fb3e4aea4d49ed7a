#include "convergence.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

namespace {

using cuda_on_cpu::Operation;
using cuda_on_cpu::Space;
using namespace cuda_on_cpu::inspector;

// A trace as text: each letter is an access at a place of its own; capital letters are
// synchronisation points.
std::vector<TraceEntry> events(const std::string& text) {
    std::vector<TraceEntry> trace;
    for (const char character : text) {
        const auto letter = static_cast<unsigned char>(character);
        const auto place = static_cast<Place>(letter);
        trace.push_back(
            {letter >= 'a' ? Action(place, Space::kGlobal, Operation::kLoad, 4) : Action::sync_point(place),
             trace.size()});
    }
    return trace;
}

struct Step {
    char place;
    LaneMask mask;
    bool operator==(const Step&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Step& step) {
    return out << step.place << ' ' << std::hex << step.mask << std::dec;
}

// The instructions that lanes executed together. Also checks that each event is executed exactly
// once, in its lane's order.
std::vector<Step> steps(const std::vector<std::string>& lanes) {
    std::vector<std::vector<TraceEntry>> storage;
    for (const std::string& text : lanes)
        storage.push_back(events(text));
    Traces traces;
    for (std::size_t lane = 0; lane < storage.size(); ++lane)
        traces[lane] = storage[lane];
    std::array<std::string, kLanes> executed;
    std::vector<Step> result;
    converge(traces, [&](const Instruction& now) {
        Step step{0, now.mask};
        for (unsigned lane = 0; lane < kLanes; ++lane) {
            if ((now.mask >> lane & 1) == 0) continue;
            const char letter = static_cast<char>(traces[lane][now.event[lane]].action.place());
            EXPECT_TRUE(step.place == 0 || step.place == letter);
            step.place = letter;
            executed[lane] += letter;
        }
        result.push_back(step);
    });
    for (std::size_t lane = 0; lane < lanes.size(); ++lane)
        EXPECT_EQ(executed[lane], lanes[lane]) << "lane " << lane;
    return result;
}

using Steps = std::vector<Step>;

TEST(Convergence, NothingHappened) {
    EXPECT_EQ(steps({}), Steps());
    EXPECT_EQ(steps({"", ""}), Steps());
}

TEST(Convergence, AllLanesAlike) {
    EXPECT_EQ(steps({"aba", "aba"}), (Steps{{'a', 3}, {'b', 3}, {'a', 3}}));
    EXPECT_EQ(steps(std::vector<std::string>(32, "ab")), (Steps{{'a', ~0U}, {'b', ~0U}}));
}

TEST(Convergence, LanesThatDoNothing) {
    EXPECT_EQ(steps({"", "ab", "", "ab"}), (Steps{{'a', 10}, {'b', 10}}));
}

TEST(Convergence, IfWithoutElse) {
    EXPECT_EQ(steps({"abc", "ac"}), (Steps{{'a', 3}, {'b', 1}, {'c', 3}}));
    EXPECT_EQ(steps({"bc", "c"}), (Steps{{'b', 1}, {'c', 3}}));
    EXPECT_EQ(steps({"ab", "a"}), (Steps{{'a', 3}, {'b', 1}}));
    EXPECT_EQ(steps({"a", "ab"}), (Steps{{'a', 3}, {'b', 2}}));
}

TEST(Convergence, IfWithElse) {
    EXPECT_EQ(steps({"abd", "acd", "abd"}), (Steps{{'a', 7}, {'b', 5}, {'c', 2}, {'d', 7}}));
}

TEST(Convergence, LoopsOfDifferentLength) {
    EXPECT_EQ(steps({"abbbc", "abc", "ac"}), (Steps{{'a', 7}, {'b', 3}, {'b', 1}, {'b', 1}, {'c', 7}}));
}

TEST(Convergence, NestedLoopsOfDifferentLength) {
    // for (...) { a; for (...) b; c; } d;
    EXPECT_EQ(steps({"abbcabcd", "abcabbbcd"}), (Steps{{'a', 3},
                                                       {'b', 3},
                                                       {'b', 1},
                                                       {'c', 3},
                                                       {'a', 3},
                                                       {'b', 3},
                                                       {'b', 2},
                                                       {'b', 2},
                                                       {'c', 3},
                                                       {'d', 3}}));
    // One lane runs the outer loop once more.
    EXPECT_EQ(steps({"abcabcd", "abcd"}),
              (Steps{{'a', 3}, {'b', 3}, {'c', 3}, {'a', 1}, {'b', 1}, {'c', 1}, {'d', 3}}));
}

TEST(Convergence, EarlyReturn) {
    EXPECT_EQ(steps({"ab", "abcd", "a"}), (Steps{{'a', 7}, {'b', 3}, {'c', 2}, {'d', 2}}));
}

TEST(Convergence, BreakOutOfALoop) {
    // while (a) { b; if (...) break; c; } d;
    EXPECT_EQ(steps({"abcabd", "abd"}), (Steps{{'a', 3}, {'b', 3}, {'c', 1}, {'a', 1}, {'b', 1}, {'d', 3}}));
}

TEST(Convergence, SynchronisationPointsAreInstructions) {
    // A loop whose iterations differ, each ending with lanes waiting for each other.
    EXPECT_EQ(steps({"aMbM", "MbM"}), (Steps{{'a', 1}, {'M', 3}, {'b', 3}, {'M', 3}}));
}

TEST(Convergence, ADifferentSizeIsADifferentInstruction) {
    const std::vector<TraceEntry> wide = {{Action(1, Space::kGlobal, Operation::kLoad, 16), 0}};
    const std::vector<TraceEntry> narrow = {{Action(1, Space::kGlobal, Operation::kLoad, 4), 0}};
    Traces traces;
    traces[0] = wide;
    traces[1] = narrow;
    int executed = 0;
    converge(traces, [&](const Instruction&) { ++executed; });
    EXPECT_EQ(executed, 2);
}

// --- Random programs, for which the warp's execution is known ------------------------------------

// A statement. Its conditions are read from memory, so each of them is a place in the trace.
struct Statement {
    enum Kind { kAccess, kIf, kLoop, kSequence };
    Kind kind;
    char place = 0;
    std::vector<Statement> parts{};
};

class RandomProgram {
  public:
    explicit RandomProgram(unsigned seed) : random_(seed) { root_ = sequence(3); }

    // More places than there are letters: such programs are skipped.
    bool too_long() const { return places_ > 150; }

    // Runs the program as a warp does: both sides of a branch one after the other, and loops until
    // the last lane has left. Lanes write their traces on the way.
    void run() { run(root_, ~LaneMask{0}); }

    std::vector<std::string> traces = std::vector<std::string>(kLanes);
    Steps expected;

  private:
    Statement sequence(int depth) {
        Statement result{Statement::kSequence};
        const auto count = 1 + random_() % 3;
        for (unsigned i = 0; i < count; ++i)
            result.parts.push_back(statement(depth));
        return result;
    }
    Statement statement(int depth) {
        const auto kind = depth == 0 ? 0 : random_() % 3;
        Statement result{kind == 0   ? Statement::kAccess
                         : kind == 1 ? Statement::kIf
                                     : Statement::kLoop,
                         static_cast<char>('a' + places_++)};
        if (kind == 0) return result;
        result.parts.push_back(sequence(depth - 1));
        if (kind == 1 && random_() % 2 == 0) result.parts.push_back(sequence(depth - 1));
        return result;
    }

    void access(char place, LaneMask mask) {
        expected.push_back({place, mask});
        for (unsigned lane = 0; lane < kLanes; ++lane) {
            if ((mask >> lane & 1) != 0) traces[lane] += place;
        }
    }
    void run(const Statement& statement, LaneMask mask) {
        if (mask == 0) return;
        switch (statement.kind) {
            case Statement::kAccess:
                access(statement.place, mask);
                break;
            case Statement::kSequence:
                for (const Statement& part : statement.parts)
                    run(part, mask);
                break;
            case Statement::kIf: {
                access(statement.place, mask);
                const LaneMask taken = mask & some_lanes();
                const LaneMask other = mask & ~taken;
                // The side of the lowest lane first, as in converge().
                const bool taken_first = (mask & (~mask + 1) & taken) != 0;
                if (taken_first) run(statement.parts[0], taken);
                if (statement.parts.size() > 1) run(statement.parts[1], other);
                if (!taken_first) run(statement.parts[0], taken);
                break;
            }
            case Statement::kLoop:
                access(statement.place, mask);
                for (LaneMask inside = mask & some_lanes(); inside != 0; inside &= some_lanes()) {
                    run(statement.parts[0], inside);
                    access(statement.place, inside);
                }
                break;
        }
    }
    LaneMask some_lanes() {
        const auto kind = random_() % 4;
        return kind == 0 ? ~LaneMask{0} : kind == 1 ? 0 : static_cast<LaneMask>(random_());
    }

    std::mt19937 random_;
    int places_ = 0;
    Statement root_;
};

TEST(Convergence, RandomProgramsRunAsOnAGpu) {
    unsigned diverging = 0;
    for (unsigned seed = 0; seed < 3000; ++seed) {
        RandomProgram program(seed);
        if (program.too_long()) continue;
        program.run();
        const bool differ =
            std::ranges::any_of(program.traces, [&](const auto& t) { return t != program.traces[0]; });
        diverging += differ ? 1 : 0;
        // A branch that all lanes always, or never, took is not a branch for converge(): the result
        // is the same.
        ASSERT_EQ(steps(program.traces), program.expected) << "seed " << seed;
    }
    EXPECT_GT(diverging, 1000u);
}

}  // namespace
