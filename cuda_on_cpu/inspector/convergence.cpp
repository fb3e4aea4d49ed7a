#include "convergence.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace cuda_on_cpu::inspector {
namespace {

using Node = std::uint32_t;

constexpr Node kEntry = 0;
constexpr Node kExit = 1;

// The graph of the places in the traces of a warp's lanes. Nodes are numbered in the order in which
// the places were first seen.
class Graph {
  public:
    Graph() : successors_(2), predecessors_(2) {}

    Node node(Action action) {
        const auto [found, is_new] = nodes_.try_emplace(action.word(), static_cast<Node>(successors_.size()));
        if (is_new) {
            successors_.emplace_back();
            predecessors_.emplace_back();
        }
        return found->second;
    }

    void connect(Node from, Node to) {
        std::vector<Node>& list = successors_[from];
        if (std::find(list.begin(), list.end(), to) != list.end()) return;
        list.push_back(to);
        predecessors_[to].push_back(from);
    }

    // For each node the immediate post-dominator: the nearest node that every path from it to the
    // exit passes. The exit is its own. Cooper, Harvey and Kennedy, "A Simple, Fast Dominance
    // Algorithm", with all edges reversed.
    std::vector<Node> post_dominators() const {
        constexpr Node kUnknown = ~Node{0};
        const std::vector<Node> order = backwards();  // the exit first
        std::vector<std::uint32_t> position(successors_.size());
        for (std::uint32_t i = 0; i < order.size(); ++i)
            position[order[i]] = i;
        std::vector<Node> dominator(successors_.size(), kUnknown);
        dominator[kExit] = kExit;
        const auto common = [&](Node a, Node b) {
            while (a != b) {
                while (position[a] > position[b])
                    a = dominator[a];
                while (position[b] > position[a])
                    b = dominator[b];
            }
            return a;
        };
        for (bool changed = true; changed;) {
            changed = false;
            for (const Node node : order) {
                if (node == kExit) continue;
                Node nearest = kUnknown;
                for (const Node next : successors_[node]) {
                    if (dominator[next] == kUnknown) continue;
                    nearest = nearest == kUnknown ? next : common(nearest, next);
                }
                if (dominator[node] != nearest) {
                    dominator[node] = nearest;
                    changed = true;
                }
            }
        }
        return dominator;
    }

  private:
    // Reverse postorder of a depth-first search from the exit along reversed edges. Every node
    // reaches the exit, because traces end there.
    std::vector<Node> backwards() const {
        std::vector<Node> order;
        std::vector<bool> seen(predecessors_.size());
        std::vector<std::pair<Node, std::size_t>> stack = {{kExit, 0}};
        seen[kExit] = true;
        while (!stack.empty()) {
            auto& [node, next] = stack.back();
            if (next < predecessors_[node].size()) {
                const Node before = predecessors_[node][next++];
                if (!seen[before]) {
                    seen[before] = true;
                    stack.emplace_back(before, 0);
                }
            } else {
                order.push_back(node);
                stack.pop_back();
            }
        }
        std::reverse(order.begin(), order.end());
        return order;
    }

    std::unordered_map<std::uint64_t, Node> nodes_;
    std::vector<std::vector<Node>> successors_;
    std::vector<std::vector<Node>> predecessors_;
};

// A warp that replays its traces: the lanes of a mask run from their current positions until all
// have reached a node.
class Replay {
  public:
    Replay(const Traces& traces, const std::function<void(const Instruction&)>& executed)
        : traces_(traces), executed_(executed) {
        for (unsigned lane = 0; lane < kLanes; ++lane) {
            if (traces[lane].empty()) continue;
            lanes_ |= LaneMask{1} << lane;
            Node from = kEntry;
            nodes_[lane].reserve(traces[lane].size());
            for (const TraceEntry& event : traces[lane]) {
                const Node to = graph_.node(event.action);
                graph_.connect(from, to);
                nodes_[lane].push_back(to);
                from = to;
            }
            graph_.connect(from, kExit);
        }
        meets_at_ = graph_.post_dominators();
    }

    void run() {
        if (lanes_ != 0) run(lanes_, kEntry, kExit);
    }

  private:
    Node at(unsigned lane) const {
        const std::uint32_t i = now_.event[lane];
        return i < nodes_[lane].size() ? nodes_[lane][i] : kExit;
    }

    // The lanes of `mask` that are at the same node as the first of them.
    LaneMask together(LaneMask mask) const {
        const Node node = at(static_cast<unsigned>(std::countr_zero(mask)));
        LaneMask same = 0;
        for (LaneMask left = mask; left != 0; left &= left - 1) {
            const auto lane = static_cast<unsigned>(std::countr_zero(left));
            if (at(lane) == node) same |= LaneMask{1} << lane;
        }
        return same;
    }

    // `last` is the node that the lanes have just left together; they stop at `end`.
    void run(LaneMask mask, Node last, Node end) {
        for (;;) {
            if (together(mask) != mask) part(mask, last);
            const auto lane = static_cast<unsigned>(std::countr_zero(mask));
            last = at(lane);
            if (last == end) return;
            execute(mask);
        }
    }

    // The lanes have diverged. Each group follows its own path until it meets the others. They
    // never run past the node at which the caller expects all of them, because all paths from here
    // lead to that node.
    void part(LaneMask mask, Node last) {
        const Node meeting = meets_at_[last];
        for (LaneMask left = mask; left != 0;) {
            const LaneMask group = together(left);
            left &= ~group;
            run(group, last, meeting);
        }
    }

    void execute(LaneMask mask) {
        now_.mask = mask;
        executed_(now_);
        for (LaneMask left = mask; left != 0; left &= left - 1)
            ++now_.event[static_cast<unsigned>(std::countr_zero(left))];
    }

    const Traces& traces_;
    const std::function<void(const Instruction&)>& executed_;
    Graph graph_;
    std::array<std::vector<Node>, kLanes> nodes_;
    std::vector<Node> meets_at_;
    LaneMask lanes_ = 0;
    Instruction now_{};
};

}  // namespace

LaneMask lanes_alike(const Traces& traces) {
    LaneMask mask = 0;
    const Trace* leader = nullptr;
    for (unsigned lane = 0; lane < kLanes; ++lane) {
        const Trace& trace = traces[lane];
        if (trace.empty()) continue;
        mask |= LaneMask{1} << lane;
        if (leader == nullptr) {
            leader = &trace;
            continue;
        }
        if (trace.size() != leader->size()) return 0;
        std::uint64_t differences = 0;
        for (std::size_t e = 0; e < trace.size(); ++e)
            differences |= trace[e].action.word() ^ (*leader)[e].action.word();
        if (differences != 0) return 0;
    }
    return mask;
}

void converge(const Traces& traces, const std::function<void(const Instruction&)>& executed) {
    const LaneMask alike = lanes_alike(traces);
    if (alike == 0) {
        Replay(traces, executed).run();
        return;
    }
    const Trace& leader = traces[static_cast<unsigned>(std::countr_zero(alike))];
    Instruction now{alike, {}};
    for (std::uint32_t e = 0; e < leader.size(); ++e) {
        now.event.fill(e);
        executed(now);
    }
}

}  // namespace cuda_on_cpu::inspector
