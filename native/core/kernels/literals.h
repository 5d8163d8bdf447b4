/* The writing of codes into a deflate stream, and of long runs of literals in vectors. Only for kernel units. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "table.h"

namespace {

inline uint64_t bits_of(uint32_t entry) { return entry >> 8; }
inline uint32_t count_of(uint32_t entry) { return entry & 63; }

inline void store64(uint8_t *p, uint64_t v) {
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
  v = __builtin_bswap64(v);
#endif
  __builtin_memcpy(p, &v, 8);
}

/* A copy in registers while one call runs. */
struct Writer {
  uint8_t *next, *limit;
  uint64_t bits;
  uint32_t count;

  bool roomy() const { return (size_t)(limit - next) >= 8; }

  /* At most 56 bits, of which the ones above `n` are 0; whole words, where roomy. */
  void put(uint64_t value, uint32_t n) {
    bits |= value << count;
    count += n;
    store64(next, bits);
    next += count >> 3;
    bits >>= count & 56;
    count &= 7;
  }

  void put_narrow(uint64_t value, uint32_t n) {
    bits |= value << count;
    for (count += n; count >= 8; count -= 8) {
      *next++ = (uint8_t)bits;
      bits >>= 8;
    }
  }

  void put_any(uint64_t value, uint32_t n) { roomy() ? put(value, n) : put_narrow(value, n); }
};

inline const uint8_t *put_literals(Writer &w, const uint32_t *codes, const uint8_t *p, size_t n) {
  for (; n >= 4 && w.roomy(); n -= 4, p += 4) {
    uint32_t a = codes[p[0]], b = codes[p[1]], c = codes[p[2]], d = codes[p[3]];
    uint64_t first = bits_of(a) | bits_of(b) << count_of(a), second = bits_of(c) | bits_of(d) << count_of(c);
    w.put(first | second << count_of(a + b), count_of(a + b + c + d));
  }
  for (; n > 0; n--, p++) w.put_any(bits_of(codes[*p]), count_of(codes[*p]));
  return p;
}

#if defined(__AVX512BW__)
constexpr size_t kWide = 32; /* literals whose codes are joined in registers */

typedef uint8_t Bytes32 __attribute__((vector_size(32)));
typedef uint32_t Pairs __attribute__((vector_size(64)));
typedef uint64_t Fours __attribute__((vector_size(64)));

/* One word for each literal, to be looked up 32 at a time. */
struct Words {
  __m512i all[8], near[2]; /* near: of the literals -32 to 31, by their six low bits */

  explicit Words(const uint16_t *of) {
    for (size_t k = 0; k < 8; k++) all[k] = _mm512_loadu_si512(of + kWide * k);
    near[0] = all[0], near[1] = all[7];
  }
  __m512i near_at(__m512i at) const { return _mm512_permutex2var_epi16(near[0], at, near[1]); }
  __m512i at(__m512i at) const {
    const __mmask32 has_64 = _mm512_test_epi16_mask(at, _mm512_set1_epi16(64));
    const __mmask32 has_128 = _mm512_test_epi16_mask(at, _mm512_set1_epi16(128));
    __m512i a = _mm512_permutex2var_epi16(all[0], at, all[1]), b = _mm512_permutex2var_epi16(all[2], at, all[3]);
    __m512i c = _mm512_permutex2var_epi16(all[4], at, all[5]), d = _mm512_permutex2var_epi16(all[6], at, all[7]);
    __m512i low = _mm512_mask_blend_epi16(has_64, a, b), high = _mm512_mask_blend_epi16(has_64, c, d);
    return _mm512_mask_blend_epi16(has_128, low, high);
  }
};

/* The codes of a block and their numbers of bits. */
struct WordCodes {
  Words bits, counts;
};

inline WordCodes in_words(const uint32_t *codes) {
  uint16_t bits[256], counts[256];
  for (size_t i = 0; i < 256; i++) bits[i] = (uint16_t)bits_of(codes[i]), counts[i] = (uint16_t)count_of(codes[i]);
  return {Words(bits), Words(counts)};
}

/* Bits and how many there are of them. */
struct Joined {
  Fours bits, counts;
};

/* The codes of 32 literals, four in each lane. */
inline Joined join(Pairs bits, Pairs counts) {
  const Pairs first = counts & 0xFFFF;
  const Fours two = (Fours)((bits & 0xFFFF) | (bits >> 16) << first), numbers = (Fours)(first + (counts >> 16));
  const Fours half = numbers & 0xFFFFFFFF;
  return {(two & 0xFFFFFFFF) | (two >> 32) << half, half + (numbers >> 32)};
}

inline bool are_near(__m256i bytes) {
  const __m256i high = (__m256i)(((Bytes32)bytes + 32) & 0xC0);
  return _mm256_testz_si256(high, high);
}

inline Fours odd_lanes(Fours v) { return __builtin_shufflevector(v, v, 1, 1, 3, 3, 5, 5, 7, 7); }

/* Writes 32 literals at a time, while there is room. Returns their end. */
inline const uint8_t *put_wide(Writer &to, const WordCodes &codes, const uint8_t *p, const uint8_t *end) {
  Writer w = to; /* its own: what is stored might be part of another */
  const __m512i most = _mm512_set1_epi64(56);
  for (; (size_t)(end - p) >= kWide && (size_t)(w.limit - w.next) >= 64; p += kWide) {
    const __m256i bytes = _mm256_loadu_si256((const __m256i *)p);
    const __m512i at = _mm512_maskz_cvtepu8_epi16((__mmask32)-1, bytes);
    const Joined v = are_near(bytes) ? join((Pairs)codes.bits.near_at(at), (Pairs)codes.counts.near_at(at))
                                     : join((Pairs)codes.bits.at(at), (Pairs)codes.counts.at(at));
    const Joined eights = {v.bits | odd_lanes(v.bits) << v.counts, v.counts + odd_lanes(v.counts)};
    // the odd lanes hold their own number twice
    if (_mm512_cmpgt_epu64_mask((__m512i)eights.counts, most) == 0) {
      for (size_t k = 0; k < 8; k += 2) w.put(eights.bits[k], (uint32_t)eights.counts[k]);
    } else {
      for (size_t k = 0; k < 8; k++) w.put(v.bits[k], (uint32_t)v.counts[k]);
    }
  }
  to = w;
  return p;
}

constexpr size_t kLong = 16 * kWide; /* literals in a row that are worth the tables in words */
#endif

/* Writes a run of literals of one block. */
inline const uint8_t *put_run(Writer &w, const uint32_t *codes, const uint8_t *p, size_t n) {
#if defined(__AVX512BW__)
  const uint8_t *end = p + n;
  if (n >= kLong) p = put_wide(w, in_words(codes), p, end);
  n = (size_t)(end - p);
#endif
  return put_literals(w, codes, p, n);
}

}  // namespace
