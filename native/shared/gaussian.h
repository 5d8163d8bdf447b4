/*
 * Box-Muller as PyTorch's vector kernel does it: polynomials of ln, sin and cos in float32, each fma where PyTorch's
 * compiler has one. Another choice of fusion changes the stream. Written for Floats, Ints and Words, which are vectors
 * or single numbers: the including file defines them before, and fused, root and the conversions.
 */
#pragma once

#include "shared/inline.h"

namespace {

/* ln x, 0 < x <= 1, x normal. */
LK_INLINE Floats logarithm(Floats x) {
  // the exponent that leaves the mantissa in [sqrt 1/2, sqrt 2): t below is exact, as if halves were distinguished
  // first
  Ints bits = bits_of(x);
  Ints exponent = (bits - 0x3f3504f3) >> 23;
  Floats e = to_floats(exponent);
  Floats t = float_of((Words)bits - ((Words)exponent << 23)) - 1.0f;
  Floats z = t * t;
  Floats y = fused(Floats{} + 7.0376836292e-2f, t, -1.1514610310e-1f);
  y = fused(y, t, 1.1676998740e-1f);
  y = fused(y, t, -1.2420140846e-1f);
  y = fused(y, t, 1.4249322787e-1f);
  y = fused(y, t, -1.6668057665e-1f);
  y = fused(y, t, 2.0000714765e-1f);
  y = fused(y, t, -2.4999993993e-1f);
  y = fused(y, t, 3.3333331174e-1f);
  y = y * t;
  y = fused(y, z, e * -2.12194440e-4f);
  y = fused(-z, 0.5f, y);
  return fused(e, 0.693359375f, t + y);
}

/* sin a and cos a, 0 <= a <= 2 pi; octant is a / (pi / 4), rounded down. */
LK_INLINE void sine_cosine(Floats a, Ints octant, Floats *sine, Floats *cosine) {
  Ints q = (octant + 1) & ~1;
  Floats f = to_floats(q);
  a = fused(f, -0.78515625f, a);
  a = fused(f, -2.4187564849853515625e-4f, a);
  a = fused(f, -3.77489497744594108e-8f, a);
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
  const auto plain = (q & 2) == 0;
  Words sine_sign = (Words)q << 29, cosine_sign = (Words)(q + 2) << 29;
  *sine = float_of((Words)bits_of(plain ? s : c) ^ (sine_sign & 0x80000000u));
  *cosine = float_of((Words)bits_of(plain ? c : s) ^ (cosine_sign & 0x80000000u));
}

/* r * x, where -0 becomes +0; no product here is small enough for a third result. */
LK_INLINE Floats product(Floats r, Floats x) {
#if LK_HAS_FMA
  return fused(r, x, 0.0f);
#else
  return r * x + 0.0f;
#endif
}

/* sqrt(-2 ln u) cos a and sqrt(-2 ln u) sin a */
LK_INLINE void gaussian_pair(Floats u, Floats a, Floats *with_cosine, Floats *with_sine) {
  Floats r = root(-2.0f * logarithm(u)), s, c;
  sine_cosine(a, to_ints(a * 1.27323954473516f), &s, &c);
  *with_cosine = product(r, c);
  *with_sine = product(r, s);
}

}  // namespace
