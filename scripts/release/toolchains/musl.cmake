# Linux with musl, by Debian's compiler for glibc, which has no other C++ library. It is linked with musl's C library and
# the static libstdc++, which needs nothing of glibc but what native/addon/musl.c has; native symbols are checked after
# every such build (scripts/release/symbols.mjs).
# decisions: Cores for musl and Windows are cross-compiled
set(LATENTKIT_MUSL ON)
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
set(CMAKE_MODULE_LINKER_FLAGS_INIT "-nodefaultlibs")
set(CMAKE_CXX_STANDARD_LIBRARIES
  "-Wl,-Bstatic -lstdc++ -Wl,-Bdynamic -L/lib/${LATENTKIT_MUSL_TRIPLE} -l:libc.so -lgcc -lgcc_s")
