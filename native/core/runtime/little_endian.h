// Reads whose value does not depend on the order of bytes in the machine's words.
#pragma once

#include <cstdint>
#include <cstring>

namespace latentkit {

inline uint64_t little64(const uint8_t *p) {
  uint64_t v;
  std::memcpy(&v, p, 8);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
  v = __builtin_bswap64(v);
#endif
  return v;
}

}  // namespace latentkit
