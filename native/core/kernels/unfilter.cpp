// Rows of a PNG, their filter undone. A pixel needs its left neighbour, so whole pixels are the vectors.
#include <stdlib.h>

#include "lanes.h"
#include "table.h"

namespace {

typedef uint8_t Octets __attribute__((vector_size(LK_LANES * 4)));
typedef uint8_t OctetsAt __attribute__((vector_size(LK_LANES * 4), aligned(1), may_alias));

/* out may begin in front of row, so each vector is read before it is written. */
void unfilter_up(uint8_t *out, const uint8_t *row, const uint8_t *above, size_t n) {
  size_t i = 0;
  for (; i + sizeof(Octets) <= n; i += sizeof(Octets)) {
    Octets sum = *(const OctetsAt *)(row + i) + *(const OctetsAt *)(above + i);
    *(OctetsAt *)(out + i) = sum;
  }
  for (; i < n; i++) out[i] = (uint8_t)(row[i] + above[i]);
}

inline int nearest(int left, int above, int corner) {
  int by_left = abs(above - corner), by_above = abs(left - corner), by_corner = abs(left + above - 2 * corner);
  return by_left <= by_above && by_left <= by_corner ? left : by_above <= by_corner ? above : corner;
}

/* Any pixel of N bytes, byte by byte. */
template <int N>
struct Plain {
  static void sub(uint8_t *out, const uint8_t *row, const uint8_t *, size_t n) {
    uint8_t left[N] = {};
    for (size_t i = 0; i < n; i += N)
      for (int k = 0; k < N; k++) out[i + k] = left[k] = (uint8_t)(row[i + k] + left[k]);
  }
  static void average(uint8_t *out, const uint8_t *row, const uint8_t *above, size_t n) {
    uint8_t left[N] = {};
    for (size_t i = 0; i < n; i += N)
      for (int k = 0; k < N; k++) out[i + k] = left[k] = (uint8_t)(row[i + k] + ((left[k] + above[i + k]) >> 1));
  }
  static void paeth(uint8_t *out, const uint8_t *row, const uint8_t *above, size_t n) {
    uint8_t left[N] = {}, corner[N] = {};
    for (size_t i = 0; i < n; i += N)
      for (int k = 0; k < N; k++) {
        out[i + k] = left[k] = (uint8_t)(row[i + k] + nearest(left[k], above[i + k], corner[k]));
        corner[k] = above[i + k];
      }
  }
};

#if defined(__x86_64__)

/* A pixel of N = 3, 4, 6 or 8 bytes as one vector; those of 3 and 6 carry bytes of the next, which do not count. */
template <int N>
struct Pixels {
  static constexpr size_t kReach = N <= 4 ? 4 : 8;

  static __m128i load(const uint8_t *p) {
    if (N <= 4) return _mm_loadu_si32(p);
    return _mm_loadl_epi64((const __m128i *)p);
  }
  static void store(uint8_t *p, __m128i v) {
    // a byte too many is one that is read already, two are not
    if (N <= 4) _mm_storeu_si32(p, v);
    else if (N == 6) __builtin_memcpy(p, &v, N);
    else _mm_storel_epi64((__m128i *)p, v);
  }
  static __m128i load_last(const uint8_t *p) {
    uint8_t bytes[8] = {};
    __builtin_memcpy(bytes, p, N);
    return load(bytes);
  }
  static void store_last(uint8_t *p, __m128i v) { __builtin_memcpy(p, &v, N); }

  /* next(row, above) gives the pixel; the last ones must not reach past their row. */
  template <class Next>
  static void each(uint8_t *out, const uint8_t *row, const uint8_t *above, size_t n, Next next) {
    size_t i = 0;
    for (; i + kReach <= n; i += N) store(out + i, next(load(row + i), load(above + i)));
    for (; i < n; i += N) store_last(out + i, next(load_last(row + i), load_last(above + i)));
  }

  static void sub(uint8_t *out, const uint8_t *row, const uint8_t *above, size_t n) {
    __m128i left = _mm_setzero_si128();
    each(out, row, above, n, [&](__m128i x, __m128i) { return left = _mm_add_epi8(left, x); });
  }

  // the complement of a mean rounded down is the mean, rounded up, of the complements: one instruction
  static void average(uint8_t *out, const uint8_t *row, const uint8_t *above, size_t n) {
    const __m128i ones = _mm_set1_epi8(-1);
    __m128i left = ones;
    each(out, row, above, n, [&](__m128i x, __m128i up) {
      left = _mm_sub_epi8(_mm_avg_epu8(left, _mm_xor_si128(up, ones)), x);
      return _mm_xor_si128(left, ones);
    });
  }

  static __m128i magnitude(__m128i v) {
#if defined(__AVX2__)
    return _mm_abs_epi16(v);
#else
    return _mm_max_epi16(v, _mm_sub_epi16(_mm_setzero_si128(), v));
#endif
  }
  static __m128i choose(__m128i where, __m128i yes, __m128i no) {
#if defined(__AVX2__)
    return _mm_blendv_epi8(no, yes, where);
#else
    return _mm_or_si128(_mm_and_si128(where, yes), _mm_andnot_si128(where, no));
#endif
  }

  static void paeth(uint8_t *out, const uint8_t *row, const uint8_t *above, size_t n) {
    const __m128i zero = _mm_setzero_si128();
    __m128i left = zero, corner = zero;
    each(out, row, above, n, [&](__m128i x, __m128i up) {
      up = _mm_unpacklo_epi8(up, zero);
      __m128i a = _mm_sub_epi16(up, corner), b = _mm_sub_epi16(left, corner);
      __m128i by_left = magnitude(a), by_above = magnitude(b), by_corner = magnitude(_mm_add_epi16(a, b));
      __m128i side = choose(_mm_cmpgt_epi16(by_left, by_above), up, left);
      __m128i use_corner = _mm_cmpgt_epi16(_mm_min_epi16(by_left, by_above), by_corner);
      // the upper bytes are 0 on both sides
      left = _mm_add_epi8(choose(use_corner, corner, side), _mm_unpacklo_epi8(x, zero));
      corner = up;
      return _mm_packus_epi16(left, left);
    });
  }
};

#else
template <int N>
struct Pixels : Plain<N> {};
#endif

template <class Rows>
void unfilter_with(int filter, uint8_t *out, const uint8_t *row, const uint8_t *above, size_t n) {
  switch (filter) {
    case 1: return Rows::sub(out, row, above, n);
    case 3: return Rows::average(out, row, above, n);
    default: return Rows::paeth(out, row, above, n);
  }
}

void unfilter(int filter, uint8_t *out, const uint8_t *row, const uint8_t *above, size_t n, size_t step) {
  if (filter == 0) {
    __builtin_memmove(out, row, n);
    return;
  }
  if (filter == 2) return unfilter_up(out, row, above, n);
  switch (step) {
    case 1: return unfilter_with<Plain<1>>(filter, out, row, above, n);
    case 2: return unfilter_with<Plain<2>>(filter, out, row, above, n);
    case 3: return unfilter_with<Pixels<3>>(filter, out, row, above, n);
    case 4: return unfilter_with<Pixels<4>>(filter, out, row, above, n);
    case 6: return unfilter_with<Pixels<6>>(filter, out, row, above, n);
    default: return unfilter_with<Pixels<8>>(filter, out, row, above, n);
  }
}

}  // namespace

extern "C" void LK_JOIN(unfilter, LK_ISA)(lk_kernels *table) { table->unfilter = unfilter; }
