#include "ptx_instructions.hpp"

#include <algorithm>
#include <array>

namespace translator {
namespace {

// Alternatives that many forms share; @name in a form is replaced by them.
#define INTEGERS "u16|u32|u64|s16|s32|s64"
#define ANY_INTEGERS "u8|s8|" INTEGERS
#define BITS "b16|b32|b64"
#define MEMORY "b8|" ANY_INTEGERS "|" BITS "|f32|f64"
#define FLOATS "f16|bf16|f32|f64"
#define ROUND "?F:rn|rz|rm|rp "
#define FTZ "?F:ftz "
#define SAT "?F:sat "
#define COMPARE "C:eq|ne|lt|le|gt|ge|lo|ls|hi|hs|equ|neu|ltu|leu|gtu|geu|num|nan "
#define COMPARED "b16|b32|b64|" INTEGERS "|" FLOATS
#define SPACE "?S:global|shared|shared::cta|shared::cluster|local|const "
#define SCOPE "?G:cta|cluster|gpu|sys "
#define CACHE_HINTS                                                                         \
    "?L1::evict_normal|L1::evict_unchanged|L1::evict_first|L1::evict_last|L1::no_allocate " \
    "?L2::evict_normal|L2::evict_first|L2::evict_last "                                     \
    "?L2::64B|L2::128B|L2::256B "
#define LOAD "?F:weak|volatile|relaxed|acquire ?F:mmio " SCOPE SPACE "?F:ca|cg|cs|lu|cv ?nc " CACHE_HINTS
#define STORE                                             \
    "?F:weak|volatile|relaxed|release ?F:mmio " SCOPE     \
    "?S:global|shared|shared::cta|shared::cluster|local " \
    "?wb|cg|cs|wt " CACHE_HINTS
#define ATOM "?F:relaxed|acquire|release|acq_rel " SCOPE "?S:global|shared|shared::cta|shared::cluster "
#define L2_POLICY "!L2::cache_hint "

constexpr PtxForm kForms[] = {
    // Integers.
    {"add", "T:" INTEGERS, "=T,T,T", "add<T>"},
    {"add", "?F:sat T:s32", "=T,T,T", "add_sat<T>"},
    {"add", ROUND FTZ SAT "T:" FLOATS "|f16x2|bf16x2", "=T,T,T", "add_float<T,F>"},
    {"add.cc", "T:u32|s32|u64|s64", "=T,T,T", "add_cc<T>"},
    {"addc", "T:u32|s32|u64|s64", "=T,T,T", "addc<T>"},
    {"addc.cc", "T:u32|s32|u64|s64", "=T,T,T", "addc_cc<T>"},
    {"sub", "T:" INTEGERS, "=T,T,T", "sub<T>"},
    {"sub", "?F:sat T:s32", "=T,T,T", "sub_sat<T>"},
    {"sub", ROUND FTZ SAT "T:" FLOATS "|f16x2|bf16x2", "=T,T,T", "sub_float<T,F>"},
    {"sub.cc", "T:u32|s32|u64|s64", "=T,T,T", "sub_cc<T>"},
    {"subc", "T:u32|s32|u64|s64", "=T,T,T", "subc<T>"},
    {"subc.cc", "T:u32|s32|u64|s64", "=T,T,T", "subc_cc<T>"},
    {"mul.lo", "T:" INTEGERS, "=T,T,T", "mul_lo<T>"},
    {"mul.hi", "T:" INTEGERS, "=T,T,T", "mul_hi<T>"},
    {"mul.wide", "T:u16", "=u32,T,T", "mul_wide<u32,T>"},
    {"mul.wide", "T:s16", "=s32,T,T", "mul_wide<s32,T>"},
    {"mul.wide", "T:u32", "=u64,T,T", "mul_wide<u64,T>"},
    {"mul.wide", "T:s32", "=s64,T,T", "mul_wide<s64,T>"},
    {"mul", ROUND FTZ SAT "T:" FLOATS "|f16x2|bf16x2", "=T,T,T", "mul_float<T,F>"},
    {"mul24.lo", "T:u32|s32", "=T,T,T", "mul24_lo<T>"},
    {"mul24.hi", "T:u32|s32", "=T,T,T", "mul24_hi<T>"},
    {"mad24.lo", "T:u32|s32", "=T,T,T,T", "mad24_lo<T>"},
    {"mad.lo", "T:" INTEGERS, "=T,T,T,T", "mad_lo<T>"},
    {"mad.hi", "T:" INTEGERS, "=T,T,T,T", "mad_hi<T>"},
    {"mad.lo.cc", "T:u32|s32|u64|s64", "=T,T,T,T", "mad_lo_cc<T>"},
    {"mad.hi.cc", "T:u32|s32|u64|s64", "=T,T,T,T", "mad_hi_cc<T>"},
    {"madc.lo", "T:u32|s32|u64|s64", "=T,T,T,T", "madc_lo<T>"},
    {"madc.hi", "T:u32|s32|u64|s64", "=T,T,T,T", "madc_hi<T>"},
    {"madc.lo.cc", "T:u32|s32|u64|s64", "=T,T,T,T", "madc_lo_cc<T>"},
    {"madc.hi.cc", "T:u32|s32|u64|s64", "=T,T,T,T", "madc_hi_cc<T>"},
    {"mad.wide", "T:u16", "=u32,T,T,u32", "mad_wide<u32,T>"},
    {"mad.wide", "T:s16", "=s32,T,T,s32", "mad_wide<s32,T>"},
    {"mad.wide", "T:u32", "=u64,T,T,u64", "mad_wide<u64,T>"},
    {"mad.wide", "T:s32", "=s64,T,T,s64", "mad_wide<s64,T>"},
    {"mad", ROUND FTZ SAT "T:f32|f64", "=T,T,T,T", "fma<T,F>"},
    {"fma", ROUND FTZ SAT "?F:relu T:" FLOATS "|f16x2|bf16x2", "=T,T,T,T", "fma<T,F>"},
    {"div", "T:" INTEGERS, "=T,T,T", "div<T>"},
    {"div", "!F:rn|rz|rm|rp|approx|full " FTZ "T:f32|f64", "=T,T,T", "div_float<T,F>"},
    {"rem", "T:" INTEGERS, "=T,T,T", "rem<T>"},
    {"abs", "T:s16|s32|s64", "=T,T", "abs<T>"},
    {"abs", FTZ "T:" FLOATS "|f16x2|bf16x2", "=T,T", "abs_float<T,F>"},
    {"neg", "T:s16|s32|s64", "=T,T", "neg<T>"},
    {"neg", FTZ "T:" FLOATS "|f16x2|bf16x2", "=T,T", "neg_float<T,F>"},
    {"min", "T:" INTEGERS, "=T,T,T", "min<T>"},
    {"max", "T:" INTEGERS, "=T,T,T", "max<T>"},
    {"min", "?F:relu T:s32|u16x2|s16x2", "=T,T,T", "min_packed<T,F>"},
    {"max", "?F:relu T:s32|u16x2|s16x2", "=T,T,T", "max_packed<T,F>"},
    {"min", FTZ "?F:NaN ?F:xorsign ?abs T:" FLOATS "|f16x2|bf16x2", "=T,T,T", "min_float<T,F>"},
    {"max", FTZ "?F:NaN ?F:xorsign ?abs T:" FLOATS "|f16x2|bf16x2", "=T,T,T", "max_float<T,F>"},
    {"sad", "T:" INTEGERS, "=T,T,T,T", "sad<T>"},
    {"dp4a", "A:u32|s32 B:u32|s32", "=b32,b32,b32,b32", "dp4a<A,B>"},
    {"dp2a.lo", "A:u32|s32 B:u32|s32", "=b32,b32,b32,b32", "dp2a<A,B,0>"},
    {"dp2a.hi", "A:u32|s32 B:u32|s32", "=b32,b32,b32,b32", "dp2a<A,B,2>"},

    {"vadd4", "?F:sat u32 u32 u32", "=b32,b32,b32,b32", "vadd4<F>"},
    {"vadd2", "?F:sat u32 u32 u32", "=b32,b32,b32,b32", "vadd2<F>"},
    {"vabsdiff4", "u32 u32 u32", "=b32,b32,b32,b32", "vabsdiff4"},
    {"vabsdiff4", "u32 u32 u32 !add", "=b32,b32,b32,b32", "vabsdiff4_add"},
    {"vabsdiff2", "u32 u32 u32", "=b32,b32,b32,b32", "vabsdiff2"},
    {"vabsdiff2", "u32 u32 u32 !add", "=b32,b32,b32,b32", "vabsdiff2_add"},

    // Bits.
    {"and", "T:pred|" BITS, "=T,T,T", "and_<T>"},
    {"or", "T:pred|" BITS, "=T,T,T", "or_<T>"},
    {"xor", "T:pred|" BITS, "=T,T,T", "xor_<T>"},
    {"not", "T:pred|" BITS, "=T,T", "not_<T>"},
    {"cnot", "T:" BITS, "=T,T", "cnot<T>"},
    {"shl", "T:" BITS, "=T,T,u32", "shl<T>"},
    {"shr", "T:" BITS "|" INTEGERS, "=T,T,u32", "shr<T>"},
    {"shf", "!M:l|r !N:wrap|clamp T:b32", "=T,T,T,u32", "shf<M,N>"},
    {"bfe", "T:u32|s32|u64|s64", "=T,T,u32,u32", "bfe<T>"},
    {"bfi", "T:b32|b64", "=T,T,T,u32,u32", "bfi<T>"},
    {"bfind", "T:u32|s32|u64|s64", "=u32,T", "bfind<T>"},
    {"bfind.shiftamt", "T:u32|s32|u64|s64", "=u32,T", "bfind_shiftamt<T>"},
    {"brev", "T:b32|b64", "=T,T", "brev<T>"},
    {"clz", "T:b32|b64", "=u32,T", "clz<T>"},
    {"popc", "T:b32|b64", "=u32,T", "popc<T>"},
    {"fns", "b32", "=b32,b32,b32,s32", "fns"},
    {"bmsk", "!M:wrap|clamp b32", "=b32,b32,b32", "bmsk<M>"},
    {"szext", "!M:wrap|clamp T:u32|s32", "=T,T,u32", "szext<T,M>"},
    {"prmt", "b32", "=b32,b32,b32,b32", "prmt"},
    {"prmt", "b32 !M:f4e|b4e|rc8|ecl|ecr|rc16", "=b32,b32,b32,b32", "prmt_mode<M>"},
    {"lop3", "b32", "=b32,b32,b32,b32,u32", "lop3"},

    // Single floating-point numbers.
    {"copysign", "T:f32|f64", "=T,T,T", "copysign<T>"},
    {"testp", "!C:finite|infinite|number|notanumber|normal|subnormal T:f32|f64", "=pred,T", "testp<T,C>"},
    {"rcp", "!F:rn|rz|rm|rp|approx " FTZ "T:f32|f64", "=T,T", "rcp<T,F>"},
    {"sqrt", "!F:rn|rz|rm|rp|approx " FTZ "T:f32|f64", "=T,T", "sqrt<T,F>"},
    {"rsqrt", "!approx " FTZ "T:f32|f64", "=T,T", "rsqrt<T,F>"},
    {"ex2", "!approx " FTZ "T:f16|bf16|f32|f16x2|bf16x2", "=T,T", "ex2<T,F>"},
    {"lg2", "!approx " FTZ "T:f32", "=T,T", "lg2<T,F>"},
    {"sin", "!approx " FTZ "T:f32", "=T,T", "sin<T,F>"},
    {"cos", "!approx " FTZ "T:f32", "=T,T", "cos<T,F>"},
    {"tanh", "!approx T:f16|bf16|f32|f16x2|bf16x2", "=T,T", "tanh<T,F>"},

    // Comparisons and selection.
    {"setp", COMPARE FTZ "T:" COMPARED, "=pred,T,T", "setp<T,C,F>"},
    {"setp", COMPARE FTZ "T:" COMPARED "|f16x2|bf16x2", "=pred|=pred,T,T", "setp2<T,C,F>"},
    {"setp", COMPARE "L:and|or|xor " FTZ "T:" COMPARED, "=pred,T,T,pred", "setp_with<T,C,L,F>"},
    {"setp", COMPARE "L:and|or|xor " FTZ "T:" COMPARED, "=pred|=pred,T,T,pred", "setp2_with<T,C,L,F>"},
    {"set", COMPARE FTZ "D:u32|s32|f32 T:" COMPARED, "=D,T,T", "set<D,T,C,F>"},
    {"set", COMPARE "L:and|or|xor " FTZ "D:u32|s32|f32 T:" COMPARED, "=D,T,T,pred", "set_with<D,T,C,L,F>"},
    {"set", COMPARE FTZ "T:f16x2|bf16x2", "=T,T,T", "set_pair<T,C,F>"},
    {"set", COMPARE FTZ "f16x2 T:f16x2", "=T,T,T", "set_pair<T,C,F>"},
    {"selp", "T:" BITS "|" INTEGERS "|f32|f64", "=T,T,T,pred", "selp<T>"},
    {"slct", FTZ "T:" BITS "|" INTEGERS "|f32|f64 C:s32|f32", "=T,T,T,C", "slct<T,C>"},

    // Moves and conversions.
    {"mov", "T:pred|" BITS "|" INTEGERS "|f32|f64", "=T,T", "mov<T>"},
    {"mov", "T:b16", "=T,{b8*2}", "pack<T>"},
    {"mov", "T:b32", "=T,{b16*2}", "pack<T>"},
    {"mov", "T:b32", "=T,{b8*4}", "pack<T>"},
    {"mov", "T:b64", "=T,{b32*2}", "pack<T>"},
    {"mov", "T:b64", "=T,{b16*4}", "pack<T>"},
    {"mov", "T:b16", "{=b8*2},T", "unpack<T,b8,2>"},
    {"mov", "T:b32", "{=b16*2},T", "unpack<T,b16,2>"},
    {"mov", "T:b32", "{=b8*4},T", "unpack<T,b8,4>"},
    {"mov", "T:b64", "{=b32*2},T", "unpack<T,b32,2>"},
    {"mov", "T:b64", "{=b16*4},T", "unpack<T,b16,4>"},
    {"cvt", "?F:sat D:" ANY_INTEGERS " T:" ANY_INTEGERS, "~D,*T", "cvt<D,T,F>"},
    {"cvt", "!F:rni|rzi|rmi|rpi " FTZ SAT "D:" ANY_INTEGERS " T:" FLOATS, "~D,*T", "cvt<D,T,F>"},
    {"cvt", "!F:rn|rz|rm|rp " FTZ SAT "D:" FLOATS " T:" ANY_INTEGERS, "~D,*T", "cvt<D,T,F>"},
    {"cvt", "?F:rn|rz|rm|rp|rni|rzi|rmi|rpi " FTZ SAT "?F:relu ?F:satfinite D:" FLOATS " T:" FLOATS, "~D,*T",
     "cvt<D,T,F>"},
    {"cvt", "!F:rn|rz|rna ?F:satfinite ?F:relu tf32 f32", "=b32,f32", "cvt_tf32<F>"},
    {"cvt", "!F:rn|rz ?F:satfinite ?F:relu D:f16x2|bf16x2 f32", "=D,f32,f32", "cvt_pair<D,F>"},
    {"cvt", "!F:rn F:satfinite ?F:relu D:e4m3x2|e5m2x2 f32", "=D,f32,f32", "cvt_pair<D,F>"},
    {"cvt", "!F:rn F:satfinite ?F:relu D:e4m3x2|e5m2x2 f16x2", "=D,f16x2", "cvt_to_fp8<D,F>"},
    {"cvt", "!F:rn ?F:relu f16x2 T:e4m3x2|e5m2x2", "=f16x2,T", "cvt_from_fp8<T,F>"},
    {"cvt.pack.sat", "D:u16|s16 s32", "=b32,s32,s32", "cvt_pack<D>"},
    {"cvt.pack.sat", "D:u8|s8 s32 b32", "=b32,s32,s32,b32", "cvt_pack_with<D>"},
    {"cvta", "!S:global|shared|shared::cta|shared::cluster|local|const T:u32|u64", "=T,T", "cvta<S,T>"},
    {"cvta.to", "!S:global|shared|shared::cta|shared::cluster|local|const T:u32|u64", "=T,T", "cvta_to<S,T>"},
    {"isspacep", "!S:global|shared|shared::cta|shared::cluster|local|const", "=pred,u64", "isspacep<S>"},

    // Memory.
    {"ld", LOAD "T:" MEMORY, "~T,[]", "ld<T,S,F,G>"},
    {"ld", LOAD "V:v2|v4|v8 T:" MEMORY, "{~T*V},[]", "ld_vector<T,V,S,F,G>"},
    {"ld", LOAD L2_POLICY "T:" MEMORY, "~T,[],b64", "ld_with<T,S,F,G>"},
    {"ld", LOAD L2_POLICY "V:v2|v4|v8 T:" MEMORY, "{~T*V},[],b64", "ld_vector_with<T,V,S,F,G>"},
    {"ldu", "?S:global T:" MEMORY, "~T,[]", "ld<T,S,0,G>"},
    {"ldu", "?S:global V:v2|v4 T:" MEMORY, "{~T*V},[]", "ld_vector<T,V,S,0,G>"},
    {"st", STORE "T:" MEMORY, "[],*T", "st<T,S,F,G>"},
    {"st", STORE "V:v2|v4|v8 T:" MEMORY, "[],{*T*V}", "st_vector<T,V,S,F,G>"},
    {"st", STORE L2_POLICY "T:" MEMORY, "[],*T,b64", "st_with<T,S,F,G>"},
    {"st", STORE L2_POLICY "V:v2|v4|v8 T:" MEMORY, "[],{*T*V},b64", "st_vector_with<T,V,S,F,G>"},
    {"atom", ATOM "O:and|or|xor|exch T:b32|b64", "=T,[],T", "atom<T,O,S,F,G>"},
    {"atom", ATOM "O:add T:u32|s32|u64|s64|f32|f64", "=T,[],T", "atom<T,O,S,F,G>"},
    {"atom", ATOM "O:add !noftz T:f16|bf16|f16x2|bf16x2", "=T,[],T", "atom<T,O,S,F,G>"},
    {"atom", ATOM "O:min|max T:u32|s32|u64|s64", "=T,[],T", "atom<T,O,S,F,G>"},
    {"atom", ATOM "O:inc|dec T:u32", "=T,[],T", "atom<T,O,S,F,G>"},
    {"atom", ATOM "cas T:b16|b32|b64", "=T,[],T,T", "atom_cas<T,S,F,G>"},
    {"atom", ATOM "O:add V:v2|v4 T:f32", "{=T*V},[],{T*V}", "atom_vector<T,O,V,S,F,G>"},
    {"red", ATOM "O:and|or|xor T:b32|b64", "[],T", "red<T,O,S,F,G>"},
    {"red", ATOM "O:add T:u32|s32|u64|s64|f32|f64", "[],T", "red<T,O,S,F,G>"},
    {"red", ATOM "O:add !noftz T:f16|bf16|f16x2|bf16x2", "[],T", "red<T,O,S,F,G>"},
    {"red", ATOM "O:min|max T:u32|s32|u64|s64", "[],T", "red<T,O,S,F,G>"},
    {"red", ATOM "O:inc|dec T:u32", "[],T", "red<T,O,S,F,G>"},
    {"red", ATOM "O:add V:v2|v4 T:f32", "[],{T*V}", "red_vector<T,O,V,S,F,G>"},
    {"red", ATOM "O:add !noftz V:v2|v4 T:f16x2|bf16x2", "[],{T*V}", "red_vector<T,O,V,S,F,G>"},
    {"prefetch", "?global|local !L1|L2", "[]", "prefetch"},
    {"prefetch.global", "!L2::evict_last|L2::evict_normal", "[]", "prefetch"},
    {"prefetchu", "!L1", "[]", "prefetch"},
    {"prefetch.tensormap", "", "[]", "prefetch"},
    {"applypriority", "?global !L2::evict_normal", "[],u32", "prefetch_of"},
    {"discard", "?global !L2", "[],u32", "prefetch_of"},
    {"createpolicy.fractional",
     "!L2::evict_last|L2::evict_normal|L2::evict_first|L2::evict_unchanged ?L2::evict_first b64", "=b64",
     "policy"},
    {"createpolicy.fractional",
     "!L2::evict_last|L2::evict_normal|L2::evict_first|L2::evict_unchanged ?L2::evict_first b64", "=b64,f32",
     "policy_of"},

    // Threads of a warp and of a block.
    {"shfl.sync", "!M:up|down|bfly|idx b32", "=b32,b32,b32,b32,b32", "shfl<M>"},
    {"shfl.sync", "!M:up|down|bfly|idx b32", "=b32|=pred,b32,b32,b32,b32", "shfl_with<M>"},
    {"vote.sync", "!M:all|any|uni pred", "=pred,pred,b32", "vote<M>"},
    {"vote.sync.ballot", "b32", "=b32,pred,b32", "vote_ballot"},
    {"match.any.sync", "T:b32|b64", "=b32,T,b32", "match_any<T>"},
    {"match.all.sync", "T:b32|b64", "=b32,T,b32", "match_all<T>"},
    {"match.all.sync", "T:b32|b64", "=b32|=pred,T,b32", "match_all_with<T>"},
    {"activemask", "b32", "=b32", "activemask"},
    {"redux.sync", "O:add|min|max T:u32|s32", "=T,T,b32", "redux<T,O>"},
    {"redux.sync", "O:and|or|xor T:b32", "=T,T,b32", "redux<T,O>"},
    {"elect.sync", "", "=b32|=pred,b32", "elect"},
    {"bar.sync", "", "u32", "bar_sync"},
    {"bar.sync", "", "u32,u32", "bar_sync_of"},
    {"bar.cta.sync", "", "u32", "bar_sync"},
    {"bar.cta.sync", "", "u32,u32", "bar_sync_of"},
    {"barrier.sync", "?aligned", "u32", "bar_sync"},
    {"barrier.sync", "?aligned", "u32,u32", "bar_sync_of"},
    {"barrier.cta.sync", "?aligned", "u32", "bar_sync"},
    {"barrier.cta.sync", "?aligned", "u32,u32", "bar_sync_of"},
    {"bar.arrive", "", "u32,u32", "bar_arrive"},
    {"bar.cta.arrive", "", "u32,u32", "bar_arrive"},
    {"barrier.arrive", "?aligned", "u32,u32", "bar_arrive"},
    {"barrier.cta.arrive", "?aligned", "u32,u32", "bar_arrive"},
    {"bar.red.popc", "u32", "=u32,u32,pred", "bar_red_popc"},
    {"bar.red.popc", "u32", "=u32,u32,u32,pred", "bar_red_popc_of"},
    {"bar.red", "!O:and|or pred", "=pred,u32,pred", "bar_red<O>"},
    {"bar.red", "!O:and|or pred", "=pred,u32,u32,pred", "bar_red_of<O>"},
    {"bar.cta.red.popc", "u32", "=u32,u32,pred", "bar_red_popc"},
    {"bar.cta.red.popc", "u32", "=u32,u32,u32,pred", "bar_red_popc_of"},
    {"bar.cta.red", "!O:and|or pred", "=pred,u32,pred", "bar_red<O>"},
    {"bar.cta.red", "!O:and|or pred", "=pred,u32,u32,pred", "bar_red_of<O>"},
    {"barrier.red.popc", "?aligned u32", "=u32,u32,pred", "bar_red_popc"},
    {"barrier.red.popc", "?aligned u32", "=u32,u32,u32,pred", "bar_red_popc_of"},
    {"barrier.red", "!O:and|or ?aligned pred", "=pred,u32,pred", "bar_red<O>"},
    {"barrier.red", "!O:and|or ?aligned pred", "=pred,u32,u32,pred", "bar_red_of<O>"},
    {"barrier.cta.red.popc", "?aligned u32", "=u32,u32,pred", "bar_red_popc"},
    {"barrier.cta.red.popc", "?aligned u32", "=u32,u32,u32,pred", "bar_red_popc_of"},
    {"barrier.cta.red", "!O:and|or ?aligned pred", "=pred,u32,pred", "bar_red<O>"},
    {"barrier.cta.red", "!O:and|or ?aligned pred", "=pred,u32,u32,pred", "bar_red_of<O>"},
    {"bar.warp.sync", "", "b32", "bar_warp_sync"},
    {"barrier.cluster.arrive", "?release|relaxed ?aligned", "", "cluster_arrive"},
    {"barrier.cluster.wait", "?acquire ?aligned", "", "cluster_wait"},
    {"mapa", "?S:shared::cluster T:u32|u64", "=T,T,u32", "mapa<S,T>"},
    {"getctarank", "?S:shared::cluster T:u32|u64", "=u32,T", "getctarank<S,T>"},
    {"membar", "!G:cta|gl|sys", "", "fence<G>"},
    {"fence", "?acq_rel|sc|acquire|release !G:cta|cluster|gpu|sys", "", "fence<G>"},
    {"fence.proxy.async", "?global|shared|shared::cta|shared::cluster", "", "fence_proxy_async"},
    {"fence.proxy.alias", "", "", "nothing"},
    {"fence.mbarrier_init.release.cluster", "", "", "fence_mbarrier_init"},
    {"griddepcontrol.launch_dependents", "", "", "nothing"},
    {"griddepcontrol.wait", "", "", "await_previous_grid"},
    {"setmaxnreg", "!inc|dec !sync !aligned u32", "u32", "set_registers"},
    {"nanosleep", "u32", "u32", "nanosleep"},
    {"pmevent", "?mask", "u32", "nothing_with"},
    {"trap", "", "", "trap"},
    {"brkpt", "", "", "brkpt"},
    {"exit", "", "", "exit"},

    // Asynchronous copies and barriers in shared memory.
    {"cp.async", "!ca|cg !shared|shared::cta !global ?L2::64B|L2::128B|L2::256B", "[],[],u32", "cp_async"},
    {"cp.async", "!ca|cg !shared|shared::cta !global ?L2::64B|L2::128B|L2::256B", "[],[],u32,u32",
     "cp_async_part"},
    {"cp.async", "!ca|cg !shared|shared::cta !global ?L2::64B|L2::128B|L2::256B", "[],[],u32,pred",
     "cp_async_unless"},
    {"cp.async", "!ca|cg !shared|shared::cta !global " L2_POLICY "?L2::64B|L2::128B|L2::256B",
     "[],[],u32,b64", "cp_async_with_policy"},
    {"cp.async", "!ca|cg !shared|shared::cta !global " L2_POLICY "?L2::64B|L2::128B|L2::256B",
     "[],[],u32,u32,b64", "cp_async_part_with_policy"},
    {"cp.async.commit_group", "", "", "cp_async_commit_group"},
    {"cp.async.wait_group", "", "u32", "cp_async_wait_group"},
    {"cp.async.wait_all", "", "", "cp_async_wait_all"},
    {"cp.async.mbarrier.arrive", "?S:shared|shared::cta b64", "[]", "cp_async_mbarrier_arrive<S,0>"},
    {"cp.async.mbarrier.arrive.noinc", "?S:shared|shared::cta b64", "[]", "cp_async_mbarrier_arrive<S,1>"},
    {"mbarrier.init", "?S:shared|shared::cta b64", "[],u32", "mbarrier_init<S>"},
    {"mbarrier.inval", "?S:shared|shared::cta b64", "[]", "mbarrier_inval<S>"},
    {"mbarrier.arrive", "?release ?cta|cluster ?S:shared|shared::cta|shared::cluster b64", "=b64,[]",
     "mbarrier_arrive<S>"},
    {"mbarrier.arrive", "?release ?cta|cluster ?S:shared|shared::cta|shared::cluster b64", "=b64,[],u32",
     "mbarrier_arrive_times<S>"},
    {"mbarrier.arrive.expect_tx", "?release|relaxed ?cta|cluster ?S:shared|shared::cta b64", "=b64,[],u32",
     "mbarrier_arrive_expect<S>"},
    {"mbarrier.test_wait", "?acquire|relaxed ?cta|cluster ?S:shared|shared::cta b64", "=pred,[],b64",
     "mbarrier_test_state<S>"},
    {"mbarrier.test_wait.parity", "?acquire|relaxed ?cta|cluster ?S:shared|shared::cta b64", "=pred,[],u32",
     "mbarrier_test_parity<S>"},
    {"mbarrier.try_wait", "?acquire|relaxed ?cta|cluster ?S:shared|shared::cta b64", "=pred,[],b64",
     "mbarrier_try_state<S>"},
    {"mbarrier.try_wait", "?acquire|relaxed ?cta|cluster ?S:shared|shared::cta b64", "=pred,[],b64,u32",
     "mbarrier_try_state_for<S>"},
    {"mbarrier.try_wait.parity", "?acquire|relaxed ?cta|cluster ?S:shared|shared::cta b64", "=pred,[],u32",
     "mbarrier_try_parity<S>"},
    {"mbarrier.try_wait.parity", "?acquire|relaxed ?cta|cluster ?S:shared|shared::cta b64",
     "=pred,[],u32,u32", "mbarrier_try_parity_for<S>"},
    {"mbarrier.expect_tx", "?relaxed ?cta|cluster ?S:shared|shared::cta|shared::cluster b64", "[],u32",
     "mbarrier_expect<S>"},
    {"mbarrier.complete_tx", "?relaxed ?cta|cluster ?S:shared|shared::cta|shared::cluster b64", "[],u32",
     "mbarrier_complete<S>"},
    {"cp.async.bulk", "!shared::cluster|shared::cta !global !mbarrier::complete_tx::bytes", "[],[],u32,[]",
     "bulk_copy_to_shared"},
    {"cp.async.bulk", "!shared::cluster|shared::cta !global !mbarrier::complete_tx::bytes " L2_POLICY,
     "[],[],u32,[],b64", "bulk_copy_to_shared_with_policy"},
    {"cp.async.bulk", "!global !shared::cta !bulk_group ?L2::128B", "[],[],u32", "bulk_copy_to_global"},
    {"cp.async.bulk", "!global !shared::cta !bulk_group " L2_POLICY, "[],[],u32,b64",
     "bulk_copy_to_global_with_policy"},
    {"cp.async.bulk.prefetch.L2", "!global", "[],u32", "prefetch_of"},
    {"cp.async.bulk.prefetch.tensor.2d", "!L2 !global ?tile", "[2]", "prefetch_tensor"},
    {"cp.async.bulk.commit_group", "", "", "bulk_commit_group"},
    {"cp.async.bulk.wait_group", "", "u32", "bulk_wait_group"},
    {"cp.async.bulk.wait_group.read", "", "u32", "bulk_wait_group_read"},
    {"cp.async.bulk.tensor.2d", "!shared::cluster|shared::cta !global ?tile !mbarrier::complete_tx::bytes",
     "[],[2],[]", "tensor_load"},
    {"cp.async.bulk.tensor.2d",
     "!shared::cluster|shared::cta !global ?tile !mbarrier::complete_tx::bytes " L2_POLICY, "[],[2],[],b64",
     "tensor_load_with_policy"},
    {"cp.async.bulk.tensor.2d",
     "!shared::cluster !global ?tile !mbarrier::complete_tx::bytes !multicast::cluster", "[],[2],[],b16",
     "tensor_load_multicast"},
    {"cp.async.bulk.tensor.2d",
     "!shared::cluster !global ?tile !mbarrier::complete_tx::bytes !multicast::cluster " L2_POLICY,
     "[],[2],[],b16,b64", "tensor_load_multicast_with_policy"},
    {"cp.async.bulk.tensor.2d", "!global !shared::cta ?tile !bulk_group", "[2],[]", "tensor_store"},
    {"cp.async.bulk.tensor.2d", "!global !shared::cta ?tile !bulk_group " L2_POLICY, "[2],[],b64",
     "tensor_store_with_policy"},

    // Matrices of a warpgroup.
    {"wgmma.fence.sync.aligned", "", "", "wgmma_fence"},
    {"wgmma.commit_group.sync.aligned", "", "", "wgmma_commit"},
    {"wgmma.wait_group.sync.aligned", "", "u32", "wgmma_wait_group"},
    {"wgmma.mma_async.sync.aligned", "N:m64n#k16 f32 A:f16 f16", "{&f32*N/2},b64,b64,pred,s32,s32,s32,s32",
     "wgmma_of_halves<A,N>"},
    {"wgmma.mma_async.sync.aligned", "N:m64n#k16 f32 A:bf16 bf16", "{&f32*N/2},b64,b64,pred,s32,s32,s32,s32",
     "wgmma_of_halves<A,N>"},
    {"wgmma.mma_async.sync.aligned", "N:m64n#k32 f32 A:e4m3 e4m3", "{&f32*N/2},b64,b64,pred,s32,s32",
     "wgmma_of_bytes<A,N>"},
    {"wgmma.mma_async.sync.aligned", "N:m64n#k32 f32 A:e5m2 e5m2", "{&f32*N/2},b64,b64,pred,s32,s32",
     "wgmma_of_bytes<A,N>"},
    {"wgmma.mma_async.sync.aligned", "N:m64n#k32 s32 A:s8 s8", "{&s32*N/2},b64,b64,pred",
     "wgmma_of_integers<N>"},

    // Matrices of a warp.
    {"ldmatrix.sync", "!aligned !m8n8 !V:x1|x2|x4 ?F:trans !shared|shared::cta !b16", "{=b32*V},[]",
     "ldmatrix<V,F>"},
    {"stmatrix.sync", "!aligned !m8n8 !V:x1|x2|x4 ?F:trans !shared|shared::cta !b16", "[],{b32*V}",
     "stmatrix<V,F>"},
    {"movmatrix.sync", "!aligned !m8n8 !trans !b16", "=b32,b32", "movmatrix"},
    {"mma.sync.aligned.m16n8k8.row.col", "f32 f16 f16 f32", "{=f32*4},{b32*2},{b32*1},{f32*4}",
     "mma<16,8,8,f32,f16,f16>"},
    {"mma.sync.aligned.m16n8k8.row.col", "f16 f16 f16 f16", "{=b32*2},{b32*2},{b32*1},{b32*2}",
     "mma<16,8,8,f16,f16,f16>"},
    {"mma.sync.aligned.m16n8k8.row.col", "f32 bf16 bf16 f32", "{=f32*4},{b32*2},{b32*1},{f32*4}",
     "mma<16,8,8,f32,bf16,bf16>"},
    {"mma.sync.aligned.m16n8k16.row.col", "f32 f16 f16 f32", "{=f32*4},{b32*4},{b32*2},{f32*4}",
     "mma<16,8,16,f32,f16,f16>"},
    {"mma.sync.aligned.m16n8k16.row.col", "f16 f16 f16 f16", "{=b32*2},{b32*4},{b32*2},{b32*2}",
     "mma<16,8,16,f16,f16,f16>"},
    {"mma.sync.aligned.m16n8k16.row.col", "f32 bf16 bf16 f32", "{=f32*4},{b32*4},{b32*2},{f32*4}",
     "mma<16,8,16,f32,bf16,bf16>"},
    {"mma.sync.aligned.m16n8k4.row.col", "f32 tf32 tf32 f32", "{=f32*4},{b32*2},{b32*1},{f32*4}",
     "mma<16,8,4,f32,tf32,tf32>"},
    {"mma.sync.aligned.m16n8k8.row.col", "f32 tf32 tf32 f32", "{=f32*4},{b32*4},{b32*2},{f32*4}",
     "mma<16,8,8,f32,tf32,tf32>"},
    {"mma.sync.aligned.m16n8k32.row.col", "f32 A:e4m3|e5m2 B:e4m3|e5m2 f32",
     "{=f32*4},{b32*4},{b32*2},{f32*4}", "mma<16,8,32,f32,A,B>"},
    {"mma.sync.aligned.m8n8k16.row.col", "?F:satfinite s32 A:u8|s8 B:u8|s8 s32",
     "{=s32*2},{b32*1},{b32*1},{s32*2}", "mma<8,8,16,s32,A,B,F>"},
    {"mma.sync.aligned.m16n8k16.row.col", "?F:satfinite s32 A:u8|s8 B:u8|s8 s32",
     "{=s32*4},{b32*2},{b32*1},{s32*4}", "mma<16,8,16,s32,A,B,F>"},
    {"mma.sync.aligned.m16n8k32.row.col", "?F:satfinite s32 A:u8|s8 B:u8|s8 s32",
     "{=s32*4},{b32*4},{b32*2},{s32*4}", "mma<16,8,32,s32,A,B,F>"},
    {"mma.sync.aligned.m8n8k4.row.col", "?rn f64 f64 f64 f64", "{=f64*2},{f64*1},{f64*1},{f64*2}",
     "mma<8,8,4,f64,f64,f64>"},
    {"mma.sync.aligned.m16n8k4.row.col", "?rn f64 f64 f64 f64", "{=f64*4},{f64*2},{f64*1},{f64*4}",
     "mma<16,8,4,f64,f64,f64>"},
    {"mma.sync.aligned.m16n8k8.row.col", "?rn f64 f64 f64 f64", "{=f64*4},{f64*4},{f64*2},{f64*4}",
     "mma<16,8,8,f64,f64,f64>"},
    {"mma.sync.aligned.m16n8k16.row.col", "?rn f64 f64 f64 f64", "{=f64*4},{f64*8},{f64*4},{f64*4}",
     "mma<16,8,16,f64,f64,f64>"},
};

constexpr PtxSpecialRegister kSpecialRegisters[] = {
    {"tid.x", 32, "tid_x"},
    {"tid.y", 32, "tid_y"},
    {"tid.z", 32, "tid_z"},
    {"ntid.x", 32, "ntid_x"},
    {"ntid.y", 32, "ntid_y"},
    {"ntid.z", 32, "ntid_z"},
    {"ctaid.x", 32, "ctaid_x"},
    {"ctaid.y", 32, "ctaid_y"},
    {"ctaid.z", 32, "ctaid_z"},
    {"nctaid.x", 32, "nctaid_x"},
    {"nctaid.y", 32, "nctaid_y"},
    {"nctaid.z", 32, "nctaid_z"},
    {"clusterid.x", 32, "clusterid_x"},
    {"clusterid.y", 32, "clusterid_y"},
    {"clusterid.z", 32, "clusterid_z"},
    {"nclusterid.x", 32, "nclusterid_x"},
    {"nclusterid.y", 32, "nclusterid_y"},
    {"nclusterid.z", 32, "nclusterid_z"},
    {"cluster_ctaid.x", 32, "cluster_ctaid_x"},
    {"cluster_ctaid.y", 32, "cluster_ctaid_y"},
    {"cluster_ctaid.z", 32, "cluster_ctaid_z"},
    {"cluster_nctaid.x", 32, "cluster_nctaid_x"},
    {"cluster_nctaid.y", 32, "cluster_nctaid_y"},
    {"cluster_nctaid.z", 32, "cluster_nctaid_z"},
    {"cluster_ctarank", 32, "cluster_ctarank"},
    {"cluster_nctarank", 32, "cluster_nctarank"},
    {"laneid", 32, "laneid"},
    {"warpid", 32, "warpid"},
    {"nwarpid", 32, "nwarpid"},
    {"smid", 32, "smid"},
    {"nsmid", 32, "nsmid"},
    {"lanemask_eq", 32, "lanemask_eq"},
    {"lanemask_le", 32, "lanemask_le"},
    {"lanemask_lt", 32, "lanemask_lt"},
    {"lanemask_ge", 32, "lanemask_ge"},
    {"lanemask_gt", 32, "lanemask_gt"},
    {"clock", 32, "clock"},
    {"clock_hi", 32, "clock_hi"},
    {"clock64", 64, "clock64"},
    {"globaltimer", 64, "globaltimer"},
    {"globaltimer_lo", 32, "globaltimer_lo"},
    {"globaltimer_hi", 32, "globaltimer_hi"},
    {"dynamic_smem_size", 32, "dynamic_smem_size"},
};

struct NamedType {
    std::string_view name;
    PtxType type;
};
constexpr NamedType kTypes[] = {
    {"pred", {1, false}},   {"b8", {8, false}},      {"u8", {8, false}},      {"s8", {8, false}},
    {"b16", {16, false}},   {"u16", {16, false}},    {"s16", {16, false}},    {"b32", {32, false}},
    {"u32", {32, false}},   {"s32", {32, false}},    {"b64", {64, false}},    {"u64", {64, false}},
    {"s64", {64, false}},   {"f16", {16, true}},     {"bf16", {16, true}},    {"f32", {32, true}},
    {"f64", {64, true}},    {"f16x2", {32, false}},  {"bf16x2", {32, false}}, {"u16x2", {32, false}},
    {"s16x2", {32, false}}, {"e4m3x2", {16, false}}, {"e5m2x2", {16, false}},
};

}  // namespace

std::optional<PtxType> ptx_type(std::string_view name) {
    for (const NamedType& known : kTypes) {
        if (known.name == name) return known.type;
    }
    return std::nullopt;
}

std::vector<const PtxForm*> ptx_forms(std::string_view instruction) {
    std::vector<const PtxForm*> forms;
    std::size_t longest = 0;
    for (const PtxForm& form : kForms) {
        const std::size_t length = form.name.size();
        const bool fits = instruction.substr(0, length) == form.name &&
                          (instruction.size() == length || instruction[length] == '.');
        if (!fits || length < longest) continue;
        if (length > longest) forms.clear();
        longest = length;
        forms.push_back(&form);
    }
    return forms;
}

const PtxSpecialRegister* ptx_special_register(std::string_view name) {
    const auto* const found = std::find_if(std::begin(kSpecialRegisters), std::end(kSpecialRegisters),
                                           [&](const auto& known) { return known.name == name; });
    return found == std::end(kSpecialRegisters) ? nullptr : found;
}

}  // namespace translator
