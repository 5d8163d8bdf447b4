/* Philox 4x32-10, and the normals that PyTorch's CUDA generator makes of its words. */
#pragma once

#include <stdint.h>

#include "shared/gaussian.h"
#include "shared/inline.h"
#include "shared/product.h"

// decision 87
namespace {

constexpr int kPhiloxRounds = 10;

struct PhiloxKey {
  uint32_t low, high;
};

LK_INLINE PhiloxKey philox_key(uint64_t seed) { return {(uint32_t)seed, (uint32_t)(seed >> 32)}; }

/* Between two rounds. */
LK_INLINE void philox_bump(PhiloxKey *key) {
  key->low += 0x9e3779b9u;
  key->high += 0xbb67ae85u;
}

LK_INLINE void philox_round(uint32_t *c0, uint32_t *c1, uint32_t *c2, uint32_t *c3, PhiloxKey key) {
  WideProduct p0 = wide_product(0xd2511f53u, *c0), p1 = wide_product(0xcd9e8d57u, *c2);
  *c0 = p1.high ^ *c1 ^ key.low;
  *c1 = p1.low;
  *c2 = p0.high ^ *c3 ^ key.high;
  *c3 = p0.low;
}

LK_INLINE Floats floats_of_words(Words v) {
#if defined(LK_CONVERTS_WORDS)
  return (Floats)v;
#else
  // two exact halves: SSE2 and AVX2 convert signed integers only, and the sum rounds as one conversion does
  return to_floats((Ints)(v >> 16)) * 65536.0f + to_floats((Ints)(v & 0xffffu));
#endif
}

/* Two words of a counter as two normals. */
LK_INLINE void philox_pair(Words radius, Words angle, Floats *with_sine, Floats *with_cosine) {
  Floats u = fused(floats_of_words(radius), 0x1p-32f, Floats{} + 0x1p-33f);
  Floats v = fused(floats_of_words(angle), 6.2831855f * 0x1p-32f, Floats{} + 6.2831855f * 0x1p-33f);
  gaussian_pair(u, v, with_cosine, with_sine);
}

}  // namespace
