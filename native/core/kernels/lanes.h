/*
 * Vectors of the width of the instruction set this unit is compiled for, and the few operations GNU vectors lack.
 * Only for kernel units; everything has internal linkage.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#endif

#if defined(__AVX512F__)
#define LK_LANES 16
#elif defined(__AVX2__)
#define LK_LANES 8
#else
#define LK_LANES 4
#endif

/* True if fused is one instruction. */
#if defined(__FMA__) || defined(__ARM_NEON)
#define LK_HAS_FMA 1
#else
#define LK_HAS_FMA 0
#endif

namespace {

constexpr size_t kLanes = LK_LANES;
constexpr size_t kWide = kLanes / 2; /* doubles in a vector */

typedef float Floats __attribute__((vector_size(LK_LANES * 4)));
typedef int32_t Ints __attribute__((vector_size(LK_LANES * 4)));
typedef uint32_t Words __attribute__((vector_size(LK_LANES * 4)));
typedef double Doubles __attribute__((vector_size(LK_LANES * 4)));
typedef float HalfFloats __attribute__((vector_size(LK_LANES * 2)));

typedef float FloatsAt __attribute__((vector_size(LK_LANES * 4), aligned(4), may_alias));
typedef uint32_t WordsAt __attribute__((vector_size(LK_LANES * 4), aligned(4), may_alias));
typedef float HalfFloatsAt __attribute__((vector_size(LK_LANES * 2), aligned(4), may_alias));

inline Floats load(const float *p) { return *(const FloatsAt *)p; }
inline void store(float *p, Floats v) { *(FloatsAt *)p = v; }
inline Words load(const uint32_t *p) { return *(const WordsAt *)p; }
inline void store(uint32_t *p, Words v) { *(WordsAt *)p = v; }

/* The same vector, which a compiler would otherwise read again from memory for each of its uses. */
inline Floats in_register(Floats v) {
#if defined(__x86_64__)
  __asm__("" : "+v"(v));
#elif defined(__ARM_NEON)
  __asm__("" : "+w"(v));
#endif
  return v;
}

/* How many of n floats lie before the first that is aligned to the vector. */
inline size_t until_aligned(const float *p, size_t n) {
  size_t head = (size_t)(-(intptr_t)p & (intptr_t)(sizeof(Floats) - 1)) / sizeof(float);
  return head < n ? head : n;
}

/* p is aligned to the vector. */
inline void store_stream(float *p, Floats v) {
#if defined(__AVX512F__)
  _mm512_stream_ps(p, (__m512)v);
#elif defined(__AVX2__)
  _mm256_stream_ps(p, (__m256)v);
#elif defined(__x86_64__)
  _mm_stream_ps(p, (__m128)v);
#else
  store(p, v);
#endif
}

/* Orders streamed stores before the signal to other threads that they are done. */
inline void end_stream() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

inline Floats to_floats(Ints v) { return __builtin_convertvector(v, Floats); }
inline Ints to_ints(Floats v) { return __builtin_convertvector(v, Ints); }
inline Ints bits_of(Floats v) { return (Ints)v; }
inline Floats float_of(Words v) { return (Floats)v; }

inline Floats root(Floats v) {
#if defined(__AVX512F__)
  return (Floats)_mm512_maskz_sqrt_ps((__mmask16)-1, (__m512)v);
#elif defined(__AVX2__)
  return (Floats)_mm256_sqrt_ps((__m256)v);
#elif defined(__x86_64__)
  return (Floats)_mm_sqrt_ps((__m128)v);
#else
  Floats r;
  for (size_t i = 0; i < kLanes; i++) r[i] = __builtin_sqrtf(v[i]);
  return r;
#endif
}

#if defined(__x86_64__) && !defined(__FMA__)
/* The product of two floats is exact in double; the sum is rounded to odd there, so that the last rounding is right. */
inline __m128 fma_pair(__m128d x, __m128d y, __m128d z) {
  typedef int64_t Bits __attribute__((vector_size(16)));
  typedef uint64_t Unsigned __attribute__((vector_size(16)));
  __m128d p = x * y, s = p + z, t = s - p;
  __m128d error = (p - (s - t)) + (z - t);
  Bits bits = (Bits)s;
  // an infinite sum leaves NaN as its error and stays as it is
  __m128d inexact = _mm_and_pd(_mm_cmpneq_pd(error, _mm_setzero_pd()), _mm_cmpord_pd(error, error));
  Bits adjust = (Bits)inexact & ~bits & 1;
  Bits down = (Bits)((Unsigned)((Bits)error ^ bits) >> 63) & adjust;
  return _mm_cvtpd_ps((__m128d)(bits + adjust - down - down));
}
#endif

// g++ 12 takes a generic conversion apart
inline Doubles widen(const float *p) {
#if defined(__AVX512F__)
  return (Doubles)_mm512_maskz_cvtps_pd((__mmask8)-1, _mm256_loadu_ps(p));
#elif defined(__AVX2__)
  return (Doubles)_mm256_cvtps_pd(_mm_loadu_ps(p));
#else
  return __builtin_convertvector(*(const HalfFloatsAt *)p, Doubles);
#endif
}

inline void store_narrow(float *p, Doubles v) {
#if defined(__AVX512F__)
  _mm256_storeu_ps(p, _mm512_maskz_cvtpd_ps((__mmask8)-1, (__m512d)v));
#elif defined(__AVX2__)
  _mm_storeu_ps(p, _mm256_cvtpd_ps((__m256d)v));
#else
  *(HalfFloatsAt *)p = __builtin_convertvector(v, HalfFloats);
#endif
}

/* Each rounded to a float. */
inline Doubles rounded(Doubles v) {
#if defined(__AVX512F__)
  const __m256 floats = _mm512_maskz_cvtpd_ps((__mmask8)-1, (__m512d)v);
  return (Doubles)_mm512_maskz_cvtps_pd((__mmask8)-1, floats);
#elif defined(__AVX2__)
  return (Doubles)_mm256_cvtps_pd(_mm256_cvtpd_ps((__m256d)v));
#else
  return __builtin_convertvector(__builtin_convertvector(v, HalfFloats), Doubles);
#endif
}

/* Two vectors of doubles rounded to one of floats. */
inline Floats narrow(Doubles low, Doubles high) {
#if defined(__AVX512F__)
  const __m256 a = _mm512_maskz_cvtpd_ps((__mmask8)-1, (__m512d)low);
  const __m256 b = _mm512_maskz_cvtpd_ps((__mmask8)-1, (__m512d)high);
  return (Floats)_mm512_insertf32x8(_mm512_castps256_ps512(a), b, 1);
#elif defined(__AVX2__)
  return (Floats)_mm256_set_m128(_mm256_cvtpd_ps((__m256d)high), _mm256_cvtpd_ps((__m256d)low));
#elif defined(__x86_64__)
  return (Floats)_mm_movelh_ps(_mm_cvtpd_ps((__m128d)low), _mm_cvtpd_ps((__m128d)high));
#else
  const HalfFloats a = __builtin_convertvector(low, HalfFloats), b = __builtin_convertvector(high, HalfFloats);
  return Floats{a[0], a[1], b[0], b[1]};
#endif
}

/* a * b + c with one rounding. */
inline Floats fused(Floats a, Floats b, Floats c) {
#if defined(__AVX512F__)
  return (Floats)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(__AVX2__)
  return (Floats)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#elif defined(__x86_64__)
  // SSE2 has none; two doubles at a time
  __m128 x = (__m128)a, y = (__m128)b, z = (__m128)c;
  __m128 low = fma_pair(_mm_cvtps_pd(x), _mm_cvtps_pd(y), _mm_cvtps_pd(z));
  __m128 high =
      fma_pair(_mm_cvtps_pd(_mm_movehl_ps(x, x)), _mm_cvtps_pd(_mm_movehl_ps(y, y)), _mm_cvtps_pd(_mm_movehl_ps(z, z)));
  return (Floats)_mm_movelh_ps(low, high);
#elif defined(__ARM_NEON)
  return (Floats)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
#else
  Floats r;
  for (size_t i = 0; i < kLanes; i++) r[i] = __builtin_fmaf(a[i], b[i], c[i]);
  return r;
#endif
}

inline Floats fused(Floats a, Floats b, float c) { return fused(a, b, Floats{} + c); }
inline Floats fused(Floats a, float b, Floats c) { return fused(a, Floats{} + b, c); }

/* Clamped to 0 … 1; NaN is 0. */
inline Floats clamped(Floats v) {
#if LK_LANES == 16
  // the second operand if the first is NaN
  __m512 above = _mm512_maskz_max_ps((__mmask16)-1, (__m512)v, _mm512_setzero_ps());
  return (Floats)_mm512_maskz_min_ps((__mmask16)-1, above, _mm512_set1_ps(1.0f));
#elif LK_LANES == 8
  return (Floats)_mm256_min_ps(_mm256_max_ps((__m256)v, _mm256_setzero_ps()), _mm256_set1_ps(1.0f));
#else
  // comparisons with NaN are false
  v = v > 0.0f ? v : Floats{};
  return v < 1.0f ? v : Floats{} + 1.0f;
#endif
}

/* One float for each of kLanes indices. */
inline Floats gather(const float *p, const int32_t *at) {
#if defined(__AVX512F__)
  // the unmasked form reads a register that g++ takes for uninitialised
  return (Floats)_mm512_mask_i32gather_ps(_mm512_setzero_ps(), (__mmask16)-1, _mm512_loadu_si512(at), p, 4);
#elif defined(__AVX2__)
  return (Floats)_mm256_i32gather_ps(p, _mm256_loadu_si256((const __m256i *)at), 4);
#else
  Floats r;
  for (size_t i = 0; i < kLanes; i++) r[i] = p[at[i]];
  return r;
#endif
}

/* Elements 0, 3, 6 … of three vectors from p; reads up to two floats past the last of them. */
inline Floats every_third(const float *p) {
  Floats a = load(p), b = load(p + kLanes), c = load(p + 2 * kLanes);
#if LK_LANES == 16
  Floats ab = __builtin_shufflevector(a, b, 0, 3, 6, 9, 12, 15, 18, 21, 24, 27, 30, -1, -1, -1, -1, -1);
  return __builtin_shufflevector(ab, c, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 17, 20, 23, 26, 29);
#elif LK_LANES == 8
  Floats ab = __builtin_shufflevector(a, b, 0, 3, 6, 9, 12, 15, -1, -1);
  return __builtin_shufflevector(ab, c, 0, 1, 2, 3, 4, 5, 10, 13);
#else
  Floats ab = __builtin_shufflevector(a, b, 0, 3, 6, -1);
  return __builtin_shufflevector(ab, c, 0, 1, 2, 5);
#endif
}

/* Elements 0, 4, 8 … of four vectors from p; reads up to three floats past the last of them. */
inline Floats every_fourth(const float *p) {
  Floats a = load(p), b = load(p + kLanes), c = load(p + 2 * kLanes), d = load(p + 3 * kLanes);
#if LK_LANES == 16
  Floats ab = __builtin_shufflevector(a, b, 0, 4, 8, 12, 16, 20, 24, 28, -1, -1, -1, -1, -1, -1, -1, -1);
  Floats cd = __builtin_shufflevector(c, d, 0, 4, 8, 12, 16, 20, 24, 28, -1, -1, -1, -1, -1, -1, -1, -1);
  return __builtin_shufflevector(ab, cd, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23);
#elif LK_LANES == 8
  Floats ab = __builtin_shufflevector(a, b, 0, 4, 8, 12, -1, -1, -1, -1);
  Floats cd = __builtin_shufflevector(c, d, 0, 4, 8, 12, -1, -1, -1, -1);
  return __builtin_shufflevector(ab, cd, 0, 1, 2, 3, 8, 9, 10, 11);
#else
  Floats ab = __builtin_shufflevector(a, b, 0, 4, -1, -1), cd = __builtin_shufflevector(c, d, 0, 4, -1, -1);
  return __builtin_shufflevector(ab, cd, 0, 1, 4, 5);
#endif
}

/* a if none of the bits is set, else b. */
inline Floats where_clear(Words words, uint32_t bits, Floats a, Floats b) {
#if defined(__AVX512F__)
  // g++ 12 makes two instructions of the test
  const __mmask16 set = _mm512_test_epi32_mask((__m512i)words, _mm512_set1_epi32((int)bits));
  return (Floats)_mm512_mask_blend_ps(set, (__m512)a, (__m512)b);
#else
  return (words & bits) == 0 ? a : b;
#endif
}

}  // namespace
