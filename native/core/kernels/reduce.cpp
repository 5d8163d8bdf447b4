// Leaves of the summation tree, and the numbers of a schedule.
#include <string.h>

#include "lanes.h"
#include "shared/tree.h"
#include "table.h"

namespace {

constexpr size_t kTreeLanes = LK_TREE_LANES;
constexpr size_t kSums = kTreeLanes / kWide;

inline double pairwise(double *lane) {
  for (size_t width = kTreeLanes / 2; width > 0; width /= 2) {
    for (size_t i = 0; i < width; i++) lane[i] += lane[i + width];
  }
  return lane[0];
}

/* The sum of n terms; at(i) gives a vector of them, one(i) a single one. */
template <class At, class One>
inline double accumulate(size_t n, At at, One one) {
  Doubles sums[kSums] = {};
  size_t i = 0;
  for (; i + kTreeLanes <= n; i += kTreeLanes) {
#pragma GCC unroll 16
    for (size_t j = 0; j < kSums; j++) sums[j] += at(i + j * kWide);
  }
  double lanes[kTreeLanes];
  __builtin_memcpy(lanes, sums, sizeof lanes);
  for (size_t j = 0; i + j < n; j++) lanes[j] += one(i + j);
  return pairwise(lanes);
}

/* term takes a vector of doubles or one double. */
template <class Term>
inline double accumulate(const float *x, size_t n, Term term) {
  return accumulate(
      n, [=](size_t i) { return term(widen(x + i)); }, [=](size_t i) { return term((double)x[i]); });
}

double sum(const float *x, size_t n) { return accumulate(x, n, Itself{}); }

double squares(const float *x, size_t n, double mean) { return accumulate(x, n, SquaredDistance{mean}); }

double scaled_errors(const float *low, const float *high, const float *previous, size_t n, double atol, double rtol) {
  const ScaledError term{atol, rtol};
  return accumulate(
      n, [=](size_t i) { return term(widen(low + i), widen(high + i), widen(previous + i)); },
      [=](size_t i) { return term((double)low[i], (double)high[i], (double)previous[i]); });
}

/* ---- steps of a schedule: evenly spaced numbers, and powers of e ---- */
void ramp(float *out, size_t n, float origin, float step, int32_t first) {
  Ints at = {};
  for (size_t lane = 0; lane < kLanes; lane++) at[lane] = first + (int32_t)lane;
  for (size_t i = 0; i < n; i += kLanes, at += (int32_t)kLanes) {
    const Floats values = fused(to_floats(at), step, Floats{} + origin);
    if (n - i >= kLanes) store(out + i, values);
    else memcpy(out + i, &values, (n - i) * sizeof(float));
  }
}

// Rounded as PyTorch's kernel rounds: correct rounding misses 39 of the 3,163 golden powers.
/* e^x = 2^k 2^(j/128) e^r, with 2^(j/128) in two floats and e^r to the square of r. */
void exponentials(float *x, size_t n, const lk_powers *powers) {
  constexpr float kInverse = 184.664963f;                       // 128 / ln 2
  constexpr float kHigh = 0x1.63p-8f, kLow = -0x1.bd0106p-20f;  // ln 2 / 128: whole multiples of kHigh are exact
  constexpr float kShift = 0x1.8p23f;                           // what is added to it is rounded to a whole number
  for (size_t i = 0; i < n; i++) {
    const float shifted = x[i] * kInverse + kShift, multiple = shifted - kShift;
    const uint32_t bits = __builtin_bit_cast(uint32_t, shifted), entry = bits % LK_POWERS;
    const float r = x[i] - multiple * kHigh - multiple * kLow;
    const float power = powers->high[entry];
    const float mantissa = power + (power * (r + 0.5f * (r * r)) + powers->low[entry]);
    const uint32_t exponent = (bits - entry) << (23 - LK_POWER_BITS);
    x[i] = __builtin_bit_cast(float, __builtin_bit_cast(uint32_t, mantissa) + exponent);
  }
}

}  // namespace

extern "C" void LK_JOIN(reduce, LK_ISA)(lk_kernels *table) {
  table->sum = sum;
  table->squares = squares;
  table->scaled_errors = scaled_errors;
  table->ramp = ramp;
  table->exponentials = exponentials;
}
