// Filters of PNG rows: one pass finds the cost of all five, a second writes the cheapest; and rows unfiltered.
#include "bytes.h"
#include "shared/pixels.h"
#include "table.h"

namespace {

/* The bytes that a filter predicts from: left, above, above left. */
struct Around {
  Bytes left, above, corner;
};

/* The nearest of the three to left + above - corner, in bytes: the third distance is the difference of the other two
 * if they point apart, and never the least if they do not. */
inline Bytes paeth(const Around &p) {
  Bytes to_left = apart(p.above, p.corner), to_above = apart(p.left, p.corner), to_corner = apart(to_left, to_above);
  Bytes nearer = to_left <= to_above ? p.left : p.above, least = lesser(to_left, to_above);
#if defined(__AVX512BW__)
  const __m512i left = (__m512i)p.left, above = (__m512i)p.above, corner = (__m512i)p.corner;
  const __mmask64 apart = _mm512_cmpge_epu8_mask(above, corner) ^ _mm512_cmpge_epu8_mask(left, corner);
  const __mmask64 is_corner = _mm512_mask_cmpgt_epu8_mask(apart, (__m512i)least, (__m512i)to_corner);
  return (Bytes)_mm512_mask_mov_epi8((__m512i)nearer, is_corner, corner);
#else
  Bytes same_side = (Bytes)((p.above >= p.corner) == (p.left >= p.corner));
  return least <= (to_corner | same_side) ? nearer : p.corner;
#endif
}

template <Filter F>
inline Bytes predict(const Around &p) {
  if constexpr (F == kSub) return p.left;
  if constexpr (F == kUp) return p.above;
  if constexpr (F == kAverage) return middle(p.left, p.above);
  if constexpr (F == kPaeth) return paeth(p);
  return Bytes{};
}

struct Row {
  const uint8_t *row, *above;
  size_t n, step;

  Around around(size_t i) const { return {load(row + i - step), load(above + i), load(above + i - step)}; }

  template <Filter F>
  uint8_t byte(size_t i) const {
    uint8_t a = i < step ? 0 : row[i - step], c = i < step ? 0 : above[i - step];
    return (uint8_t)(row[i] - predict_byte<F>(a, above[i], c));
  }
};

inline void add_bytes(uint64_t costs[kFilters], const Row &r, size_t i, size_t end) {
  for (; i < end; i++) {
    costs[kNone] += byte_cost(r.byte<kNone>(i));
    costs[kSub] += byte_cost(r.byte<kSub>(i));
    costs[kUp] += byte_cost(r.byte<kUp>(i));
    costs[kAverage] += byte_cost(r.byte<kAverage>(i));
    costs[kPaeth] += byte_cost(r.byte<kPaeth>(i));
  }
}

/* Adds the costs of the vector at i, of the bytes that the mask keeps. */
inline void add_vector(Sums sums[kFilters], const Row &r, size_t i, Bytes mask) {
  const Bytes x = load(r.row + i);
  const Around p = r.around(i);
  sums[kNone] += distances(x & mask);
  sums[kSub] += distances((x - predict<kSub>(p)) & mask);
  sums[kUp] += distances((x - predict<kUp>(p)) & mask);
  sums[kAverage] += distances((x - predict<kAverage>(p)) & mask);
  sums[kPaeth] += distances((x - predict<kPaeth>(p)) & mask);
}

/* All but the first `done` bytes of a vector. */
inline Bytes without_first(size_t done) {
  alignas(64) uint8_t mask[kBytes];
  for (size_t k = 0; k < kBytes; k++) mask[k] = k < done ? 0 : 0xFF;
  return load(mask);
}

inline Filter cheapest(const Row &r) {
  uint64_t costs[kFilters] = {};
  size_t i = r.step;
  add_bytes(costs, r, 0, i);
  Sums sums[kFilters] = {};
  for (; i + kBytes <= r.n; i += kBytes) add_vector(sums, r, i, ~Bytes{});
  if (i == r.step) {
    add_bytes(costs, r, i, r.n);
  } else if (i < r.n) {
    // the last whole vector again, for the bytes that are new in it
    add_vector(sums, r, r.n - kBytes, without_first(i - (r.n - kBytes)));
  }
  int best = kNone;
  for (int k = 0; k < kFilters; k++) {
    costs[k] += total(sums[k]);
    if (costs[k] < costs[best]) best = k;
  }
  return (Filter)best;
}

template <Filter F>
inline void apply(uint8_t *out, const Row &r) {
  size_t i = 0;
  for (; i < r.step; i++) out[i] = r.byte<F>(i);
  const auto write = [&](size_t at) { store(out + at, load(r.row + at) - predict<F>(r.around(at))); };
  for (; i + kBytes <= r.n; i += kBytes) write(i);
  if (i > r.step && i < r.n) write(r.n - kBytes);
  else
    for (; i < r.n; i++) out[i] = r.byte<F>(i);
}

inline void write_row(uint8_t *out, Filter filter, const Row &r) {
  *out++ = (uint8_t)filter;
  switch (filter) {
    case kSub: return apply<kSub>(out, r);
    case kUp: return apply<kUp>(out, r);
    case kAverage: return apply<kAverage>(out, r);
    case kPaeth: return apply<kPaeth>(out, r);
    default: return apply<kNone>(out, r);
  }
}

void filter_row(uint8_t *out, const uint8_t *row, const uint8_t *above, size_t n, size_t step) {
  const Row r = {row, above, n, step};
  write_row(out, cheapest(r), r);
}

void filter_row_by(int filter, uint8_t *out, const uint8_t *row, const uint8_t *above, size_t n, size_t step) {
  write_row(out, (Filter)filter, {row, above, n, step});
}

/* ---- undone: a pixel needs its left neighbour, so whole pixels are the vectors ---- */
/* out may begin in front of row, so each vector is read before it is written. */
void unfilter_up(uint8_t *out, const uint8_t *row, const uint8_t *above, size_t n) {
  size_t i = 0;
  for (; i + kBytes <= n; i += kBytes) store(out + i, load(row + i) + load(above + i));
  for (; i < n; i++) out[i] = (uint8_t)(row[i] + above[i]);
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
        out[i + k] = left[k] = (uint8_t)(row[i + k] + byte_paeth(left[k], above[i + k], corner[k]));
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

extern "C" void LK_JOIN(png, LK_ISA)(lk_kernels *table) {
  table->filter_row = filter_row;
  table->filter_row_by = filter_row_by;
  table->unfilter = unfilter;
}
