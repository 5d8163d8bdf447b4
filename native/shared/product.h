/* 32 bits times 32 bits. */
#pragma once

#include <stdint.h>

#include "shared/inline.h"

namespace {

struct WideProduct {
  uint32_t high, low;
};

LK_INLINE WideProduct wide_product(uint32_t a, uint32_t b) {
#if defined(__CUDACC__)
  // its compiler would stay with 64 bits from one product to the next, whose multiplications are several
  return {__umulhi(a, b), a * b};
#else
  uint64_t product = (uint64_t)a * b;
  return {(uint32_t)(product >> 32), (uint32_t)product};
#endif
}

}  // namespace
