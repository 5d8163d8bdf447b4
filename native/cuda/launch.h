// Starts kernels, their arguments converted to exactly the types that the kernel declares.
#pragma once

#include <algorithm>
#include <tuple>

#include "device.h"

namespace latentkit::cuda {

/* Blocks for `threads` that each take one piece of work; kernels go on in strides where there are fewer. */
inline unsigned blocks_for(uint64_t threads) {
  constexpr uint64_t kMost = 1 << 20;
  return static_cast<unsigned>(std::clamp<uint64_t>((threads + LK_BLOCK - 1) / LK_BLOCK, 1, kMost));
}

/* Threads that take four elements each. */
inline uint64_t quads(size_t n) { return n / 4 + (n % 4 != 0); }

template <class... Parameters, class... Arguments>
engine_status launch(engine_cuda &device, Kernel kernel, void (*)(Parameters...), unsigned blocks,
                     Arguments... arguments) {
  static_assert(sizeof...(Parameters) == sizeof...(Arguments));
  std::tuple<Parameters...> values(static_cast<Parameters>(arguments)...);
  return std::apply(
      [&](auto &...value) {
        void *addresses[] = {&value...};
        return device.status(device.driver.launch(device.kernels[static_cast<size_t>(kernel)], blocks, 1, 1, LK_BLOCK,
                                                  1, 1, 0, device.stream, addresses, nullptr));
      },
      values);
}

/* LK_LAUNCH(device, scale, blocks, arguments…) */
#define LK_LAUNCH(device, name, ...) \
  ::latentkit::cuda::launch(device, ::latentkit::cuda::Kernel::name, decltype (&lk_##name)(nullptr), __VA_ARGS__)

}  // namespace latentkit::cuda
