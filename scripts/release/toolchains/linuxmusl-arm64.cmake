# Linux with musl on ARM64 (dpkg --add-architecture arm64; apt-get install g++-aarch64-linux-gnu musl:arm64).
set(LATENTKIT_MUSL_TRIPLE aarch64-linux-musl)
include(${CMAKE_CURRENT_LIST_DIR}/linux-arm64.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/musl.cmake)
