// Each lane goes through its own entry: the warp waits for the longest.
// exercise: day36/frontier_balanced
// expect: To global memory it makes \d+ requests|In global memory it needs \d+ sectors
__device__ inline void top_down(const Traversal& t, Found& mine, unsigned begin, unsigned end, unsigned next,
                                unsigned warp, unsigned warps, unsigned long long* found) {
    const unsigned share = min(course::ceil_div(end - begin, warps), static_cast<unsigned>(kWarpSize));
    for (unsigned i = begin + warp * share; i < end; i += warps * share) {
        Entry entry{};
        if (lane() < share && i + lane() < end) entry = t.queue[i + lane()];
        while (__any_sync(kWholeWarp, entry.begin < entry.end)) {
            Vertex won = kUnreached;
            if (entry.begin < entry.end) {
                const Vertex neighbour = t.out.neighbours[entry.begin++];
                if (visit(t.visited, neighbour)) {
                    t.level[neighbour] = next;
                    t.parent[neighbour] = entry.vertex;
                    won = neighbour;
                }
            }
            keep(t, mine, end, won, found);
        }
    }
    append_kept(t, mine, end, found);
}
