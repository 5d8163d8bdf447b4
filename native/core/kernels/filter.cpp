// Filters of PNG rows: one pass finds the cost of all five, a second writes the cheapest.
#include "shared/filter.h"
#include "bytes.h"
#include "table.h"

namespace {

/* The bytes that a filter predicts from: left, above, above left. */
struct Around {
  Bytes left, above, corner;
};

/* The nearest of the three to left + above - corner, in bytes: the third distance is the difference of the other two
 * where they point apart, and never the least where they do not. */
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

}  // namespace

extern "C" void LK_JOIN(filter, LK_ISA)(lk_kernels *table) {
  table->filter_row = filter_row;
  table->filter_row_by = filter_row_by;
}
