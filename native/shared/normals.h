/*
 * Box-Muller as PyTorch's vector kernel does it: polynomials of ln, sin and cos in float32, each fma where PyTorch's
 * compiler has one. Fusing differently changes the stream. Written for Floats, Ints and Words, which are vectors
 * or single numbers: the including file defines them before, and fused, root, where_clear and the conversions.
 */
#pragma once

#include <stdint.h>

#include "shared/inline.h"

namespace {

/* x * y + z, for an exact product. */
LK_INLINE Floats exact_product_sum(Floats x, float y, float z) {
#if LK_HAS_FMA
  return fused(x, Floats{} + y, Floats{} + z);
#else
  return x * y + z;
#endif
}

/* -2 ln(x / 2^power), 0 < x / 2^power <= 1, x normal. The polynomial is that of ln(1 + t), its factors times powers of
 * -2, since its variable is -2 t: no rounding is another one. All 2^32 words have
 * shown it with AVX-512 and AVX2, every 61st one without. */
LK_INLINE Floats minus_two_logarithm(Floats x, int power) {
  // the exponent that leaves the mantissa in [sqrt 1/2, sqrt 2): u below is exact, as if halves were distinguished
  // first
  Ints exponent = (bits_of(x) - (0x3f3504f3 + (power << 23))) & ~0x7fffff;
  Floats e = to_floats(exponent);  // times 2^23
  Floats u = exact_product_sum(float_of((Words)bits_of(x) - (Words)exponent), -2.0f / (float)(1 << power), 2.0f);
  Floats z = u * u;
  Floats y = fused(Floats{} + 0x1p-10f * 7.0376836292e-2f, u, 0x1p-9f * 1.1514610310e-1f);
  y = fused(y, u, 0x1p-8f * 1.1676998740e-1f);
  y = fused(y, u, 0x1p-7f * 1.2420140846e-1f);
  y = fused(y, u, 0x1p-6f * 1.4249322787e-1f);
  y = fused(y, u, 0x1p-5f * 1.6668057665e-1f);
  y = fused(y, u, 0x1p-4f * 2.0000714765e-1f);
  y = fused(y, u, 0x1p-3f * 2.4999993993e-1f);
  y = fused(y, u, 0x1p-2f * 3.3333331174e-1f);
  y = y * u;
  y = fused(y, z, e * (0x1p-22f * 2.12194440e-4f));
  y = fused(z, 0.25f, y);
  return fused(e, -0x1p-22f * 0.693359375f, u + y);
}

/* sin a and cos a, 0 <= a <= 2 pi; bits 21 to 24 of `eighths` are a / (pi / 4), rounded down. */
LK_INLINE void sine_cosine(Floats a, Ints eighths, Floats *sine, Floats *cosine) {
  Words nearest = (Words)eighths + (1u << 21);  // from bit 22 on the quarter turn
  Floats f = to_floats((Ints)(nearest >> 22));
  // exact
  a = fused(f, -1.570796251296997f, a);
  a = fused(f, -7.54978995489188216e-8f, a);
  Floats z = a * a;
  Floats c = fused(Floats{} + 2.443315711809948e-5f, z, -1.388731625493765e-3f);
  c = fused(c, z, 4.166664568298827e-2f);
  c = c * z;
  c = fused(c, z, -(0.5f * z));
  c = c + 1.0f;
  Floats s = fused(Floats{} + -1.9515295891e-4f, z, 8.3321608736e-3f);
  s = fused(s, z, -1.6666654611e-1f);
  s = s * z;
  s = fused(s, a, a);
  constexpr unsigned kIsOdd = 1u << 22;
  Words sine_sign = nearest << 8, cosine_sign = sine_sign + (kIsOdd << 8);
  *sine = float_of((Words)bits_of(where_clear(nearest, kIsOdd, s, c)) ^ (sine_sign & 0x80000000u));
  *cosine = float_of((Words)bits_of(where_clear(nearest, kIsOdd, c, s)) ^ (cosine_sign & 0x80000000u));
}

/* r * x, with -0 turned into +0; no product here is small enough for a third result. */
LK_INLINE Floats product(Floats r, Floats x) {
#if LK_HAS_FMA
  return fused(r, x, 0.0f);
#else
  return r * x + 0.0f;
#endif
}

/* sqrt(-2 ln u) cos a and sqrt(-2 ln u) sin a */
LK_INLINE void gaussian_pair(Floats u, Floats a, Floats *with_cosine, Floats *with_sine) {
  Floats r = root(minus_two_logarithm(u, 0)), s, c;
  sine_cosine(a, to_ints(a * 1.27323954473516f) << 21, &s, &c);
  *with_cosine = product(r, c);
  *with_sine = product(r, s);
}

}  // namespace

// 32-bit products keep nvcc from carrying 64 bits from round to round.
/* ---- Philox 4x32-10, and the normals that PyTorch's CUDA generator makes of its words ---- */
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
