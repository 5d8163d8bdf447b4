/* Floats of images as bytes, four vectors at a time, and as pixels, four floats in a vector whatever the instruction
 * set. Only for kernel units; everything has internal linkage. */
#pragma once

#include "lanes.h"

#if defined(__x86_64__)
#define LK_HAS_PACK 1

namespace {

/* A vector of as many bytes as Floats has. */
#if LK_LANES == 16
typedef __m512i Levels;
inline void store(uint8_t *p, Levels v) { _mm512_storeu_si512(p, v); }
inline void store_stream(uint8_t *p, Levels v) { _mm512_stream_si512((__m512i *)p, v); }
#elif LK_LANES == 8
typedef __m256i Levels;
inline void store(uint8_t *p, Levels v) { _mm256_storeu_si256((__m256i *)p, v); }
inline void store_stream(uint8_t *p, Levels v) { _mm256_stream_si256((__m256i *)p, v); }
#else
typedef __m128i Levels;
inline void store(uint8_t *p, Levels v) { _mm_storeu_si128((__m128i *)p, v); }
inline void store_stream(uint8_t *p, Levels v) { _mm_stream_si128((__m128i *)p, v); }
#endif

/* Integers that packing clips at 0: NaN and what is too small become the least. */
inline Levels unclipped(Floats v) {
  v *= 255.0f;
#if LK_LANES == 16
  // the second operand if it is NaN
  const __m512 most = _mm512_maskz_min_ps((__mmask16)-1, _mm512_set1_ps(255.0f), (__m512)v);
  return _mm512_maskz_cvttps_epi32((__mmask16)-1, most);
#elif LK_LANES == 8
  return _mm256_cvttps_epi32(_mm256_min_ps(_mm256_set1_ps(255.0f), (__m256)v));
#else
  return _mm_cvttps_epi32(_mm_min_ps(_mm_set1_ps(255.0f), (__m128)v));
#endif
}

/* to_level of each. */
inline Levels to_levels(Floats v0, Floats v1, Floats v2, Floats v3) {
  const Levels a = unclipped(v0), b = unclipped(v1), c = unclipped(v2), d = unclipped(v3);
  // packing works in quarters of 16 bytes, whose parts come out of order
#if LK_LANES == 16
  const Levels bytes = _mm512_packus_epi16(_mm512_packs_epi32(a, b), _mm512_packs_epi32(c, d));
  const Levels order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  return _mm512_maskz_permutexvar_epi32((__mmask16)-1, order, bytes);
#elif LK_LANES == 8
  const Levels bytes = _mm256_packus_epi16(_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d));
  return _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
#else
  return _mm_packus_epi16(_mm_packs_epi32(a, b), _mm_packs_epi32(c, d));
#endif
}

}  // namespace

#else
#define LK_HAS_PACK 0
#endif

namespace {

typedef float Quad __attribute__((vector_size(16)));
typedef float QuadAt __attribute__((vector_size(16), aligned(4), may_alias));

inline Quad quad(const float *p) { return *(const QuadAt *)p; }

/* A pixel with only `channels` floats that may be read. */
inline Quad pixel(const float *p, size_t channels) {
  Quad v = {};
  for (size_t c = 0; c < channels; c++) v[c] = p[c];
  return v;
}

#if LK_LANES > 4
inline Quad fused(Quad a, Quad b, Quad c) { return (Quad)_mm_fmadd_ps((__m128)a, (__m128)b, (__m128)c); }
inline Quad fused(Quad a, float b, Quad c) { return fused(a, Quad{b, b, b, b}, c); }
#endif

}  // namespace
