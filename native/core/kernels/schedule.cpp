// Steps of a schedule: evenly spaced numbers, and powers of e.
#include <string.h>

#include "lanes.h"
#include "table.h"

namespace {

void ramp(float *out, size_t n, float origin, float step, int32_t first) {
  Ints at = {};
  for (size_t lane = 0; lane < kLanes; lane++) at[lane] = first + (int32_t)lane;
  for (size_t i = 0; i < n; i += kLanes, at += (int32_t)kLanes) {
    const Floats values = fused(to_floats(at), step, Floats{} + origin);
    if (n - i >= kLanes) store(out + i, values);
    else memcpy(out + i, &values, (n - i) * sizeof(float));
  }
}

// decision 209
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

extern "C" void LK_JOIN(schedule, LK_ISA)(lk_kernels *table) {
  table->ramp = ramp;
  table->exponentials = exponentials;
}
