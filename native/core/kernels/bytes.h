/* Vectors of bytes of the width of the instruction set this unit is compiled for. Only for kernel units. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#if defined(__AVX512BW__)
#define LK_BYTES 64
#elif defined(__AVX2__)
#define LK_BYTES 32
#else
#define LK_BYTES 16
#endif

namespace {

constexpr size_t kBytes = LK_BYTES;

typedef uint8_t Bytes __attribute__((vector_size(LK_BYTES)));
typedef uint8_t BytesAt __attribute__((vector_size(LK_BYTES), aligned(1), may_alias));
typedef uint64_t Sums __attribute__((vector_size(LK_BYTES)));

inline Bytes load(const uint8_t *p) { return *(const BytesAt *)p; }
inline void store(uint8_t *p, Bytes v) { *(BytesAt *)p = v; }

inline Bytes lesser(Bytes a, Bytes b) { return a < b ? a : b; }
/* The distance of each byte from 0, modulo 256. */
inline Bytes distance(Bytes v) {
#if defined(__AVX512BW__)
  return (Bytes)_mm512_abs_epi8((__m512i)v);
#elif defined(__AVX2__)
  return (Bytes)_mm256_abs_epi8((__m256i)v);
#else
  return lesser(v, -v);
#endif
}
inline Bytes apart(Bytes a, Bytes b) { return (a > b ? a : b) - lesser(a, b); }

// On ARM64 loops over single bytes name NEON: encoding takes 27 million instructions instead of 33.
/* (a + b) / 2, rounded down. */
inline Bytes middle(Bytes a, Bytes b) {
#if defined(__AVX512BW__)
  Bytes up = (Bytes)_mm512_avg_epu8((__m512i)a, (__m512i)b);
#elif defined(__AVX2__)
  Bytes up = (Bytes)_mm256_avg_epu8((__m256i)a, (__m256i)b);
#elif defined(__x86_64__)
  Bytes up = (Bytes)_mm_avg_epu8((__m128i)a, (__m128i)b);
#elif defined(__aarch64__)
  Bytes up = (Bytes)vrhaddq_u8((uint8x16_t)a, (uint8x16_t)b);
#else
  Bytes up = (a | b) - ((a ^ b) >> 1);
#endif
  return up - ((a ^ b) & 1);
}

/* Sums of eight bytes each. */
inline Sums sums_of(Bytes v) {
#if defined(__AVX512BW__)
  return (Sums)_mm512_sad_epu8((__m512i)v, _mm512_setzero_si512());
#elif defined(__AVX2__)
  return (Sums)_mm256_sad_epu8((__m256i)v, _mm256_setzero_si256());
#elif defined(__x86_64__)
  return (Sums)_mm_sad_epu8((__m128i)v, _mm_setzero_si128());
#elif defined(__aarch64__)
  return (Sums)vpaddlq_u32(vpaddlq_u16(vpaddlq_u8((uint8x16_t)v)));
#else
  Sums pairs = ((Sums)v & 0x00FF00FF00FF00FFu) + ((Sums)v >> 8 & 0x00FF00FF00FF00FFu);
  return (pairs * 0x0001000100010001u) >> 48;
#endif
}

/* Sums of the bytes' distances from 0: small for rows that deflate well. */
inline Sums distances(Bytes v) { return sums_of(distance(v)); }

/* Bit i: byte i of v is 0. */
inline uint64_t zeros(Bytes v) {
#if defined(__AVX512BW__)
  return _mm512_testn_epi8_mask((__m512i)v, (__m512i)v);
#elif defined(__AVX2__)
  return (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8((__m256i)v, _mm256_setzero_si256()));
#elif defined(__x86_64__)
  return (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8((__m128i)v, _mm_setzero_si128()));
#elif defined(__aarch64__)
  const uint8x16_t bits = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
  uint8x16_t found = vandq_u8(vceqzq_u8((uint8x16_t)v), bits);
  return vaddv_u8(vget_low_u8(found)) | (uint64_t)vaddv_u8(vget_high_u8(found)) << 8;
#else
  uint64_t mask = 0;
  for (size_t i = 0; i < kBytes; i++) mask |= (uint64_t)(v[i] == 0) << i;
  return mask;
#endif
}

inline uint64_t total(Sums v) {
  uint64_t sum = 0;
  for (size_t i = 0; i < kBytes / 8; i++) sum += v[i];
  return sum;
}

}  // namespace
