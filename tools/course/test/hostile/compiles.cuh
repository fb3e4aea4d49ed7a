// The compiler is never done with it.
// expect: not yet.*(compiler was not done after|used more than 2 GB of memory)
// compile seconds: 20

template <int kDepth, int kSide>
struct Endless {
    static constexpr long kValue =
        Endless<kDepth - 1, 2 * kSide>::kValue + Endless<kDepth - 1, 2 * kSide + 1>::kValue;
};
template <int kSide>
struct Endless<0, kSide> {
    static constexpr long kValue = kSide;
};
static_assert(Endless<26, 0>::kValue != 0);
