# What kernels are compiled with that an inspection watches: calls before every load and store, which the inspector answers; never linked
# with the sanitizer's own library. -O1 and whole structures (no SRA) keep a source line's accesses what they are in it: a float4 is one
# load of 16 bytes. No elision: `out[i] = {a, b, c, d}` fills a temporary and copies it with one store, as nvcc does, where g++ would store
# the four members one by one (inspector/test/access_sizes_test.cu). Small functions are inlined, so that what std::atomic_ref and the like do
# for a line is known as that line's. Not fortified: memcpy and its like are the inspector's (include/cuda_on_cpu/inspected_memory.h).
set(CUDA_ON_CPU_INSPECT_OPTIONS -O1 -finline-small-functions -finline-functions -fsanitize=thread --param=tsan-instrument-func-entry-exit=0
  --param=tsan-distinguish-volatile=1 -fno-tree-sra -fno-elide-constructors
  -U_FORTIFY_SOURCE -g -gdwarf-4 -Wno-tsan)
# What kernels are compiled with whose stores are held back (inspector/late_stores.cpp).
set(CUDA_ON_CPU_LATE_STORES_OPTIONS -O1 -fsanitize=thread --param=tsan-instrument-func-entry-exit=0 -Wno-tsan)
