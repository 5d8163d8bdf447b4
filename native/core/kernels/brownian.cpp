// The cuts of a Brownian path, piece by piece.
#include "lanes.h"
#include "shared/inline.h"
#include "table.h"

namespace {

/* The left half of a cut increment w, of normals z. */
struct Bridge {
  float length, reciprocal, spread;
  template <class V>
  LK_INLINE V operator()(V w, V z) const {
    return w * length * reciprocal + z * spread;
  }
};

/* Writes the left half over its normals. */
template <bool kHasRight>
inline void bridge(float *left, float *right, const float *whole, const Bridge &half_of, size_t n) {
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const Floats w = load(whole + i), half = half_of(w, load(left + i));
    store(left + i, half);
    if (kHasRight) store(right + i, w - half);
  }
  for (; i < n; i++) {
    left[i] = half_of(whole[i], left[i]);
    if (kHasRight) right[i] = whole[i] - left[i];
  }
}

inline void difference(float *right, const float *whole, const float *left, size_t n) {
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(right + i, load(whole + i) - load(left + i));
  for (; i < n; i++) right[i] = whole[i] - left[i];
}

/* Where element `begin` of a range lies. */
inline const float *at(const lk_part &part, size_t begin) { return part.is_piece ? part.x : part.x + begin; }

inline void divided_sum(float *out, const lk_part *terms, size_t count, size_t begin, float divisor, size_t n) {
  constexpr size_t kVectors = 4; /* sums under way at once */
  size_t i = 0;
  for (; i + kVectors * kLanes <= n; i += kVectors * kLanes) {
    Floats sums[kVectors];
    for (size_t v = 0; v < kVectors; v++) sums[v] = load(at(terms[0], begin) + i + v * kLanes);
    for (size_t k = 1; k < count; k++) {
      const float *x = at(terms[k], begin) + i;
      for (size_t v = 0; v < kVectors; v++) sums[v] += load(x + v * kLanes);
    }
    for (size_t v = 0; v < kVectors; v++) store(out + i + v * kLanes, sums[v] / divisor);
  }
  for (; i < n; i++) {
    float sum = at(terms[0], begin)[i];
    for (size_t k = 1; k < count; k++) sum += at(terms[k], begin)[i];
    out[i] = sum / divisor;
  }
}

void cut_range(float *out, const lk_cut *cuts, size_t count, const lk_part *terms, size_t term_count, float divisor,
               size_t n) {
  for (size_t begin = 0; begin < n; begin += LK_PIECE) {
    const size_t size = n - begin < LK_PIECE ? n - begin : LK_PIECE;
    for (size_t k = 0; k < count; k++) {
      const lk_cut &cut = cuts[k];
      const float *whole = at(cut.whole, begin);
      float *left = cut.left + begin;
      if (cut.is_drawn) {
        difference(cut.right, whole, left, size);
      } else if (cut.right != nullptr) {
        bridge<true>(left, cut.right, whole, {cut.length, cut.reciprocal, cut.spread}, size);
      } else {
        bridge<false>(left, nullptr, whole, {cut.length, cut.reciprocal, cut.spread}, size);
      }
    }
    divided_sum(out + begin, terms, term_count, begin, divisor, size);
  }
}

}  // namespace

extern "C" void LK_JOIN(brownian, LK_ISA)(lk_kernels *table) { table->cut_range = cut_range; }
