// Divisions by numbers that the CPU sends: a product and shifts, where a card's own division takes some twenty
// instructions, three of them slow.
#pragma once

#include <stdint.h>

#include "shared/inline.h"
#include "shared/product.h"

/* by, above 0; below 2^32 the reciprocal of Granlund and Montgomery ("Division by Invariant Integers using
 * Multiplication", figure 4.1), exact for every dividend below 2^32. */
struct lk_divisor {
  uint64_t by;
  uint32_t factor;
  uint32_t halves; /* 0 for 1 */
  uint32_t shift;

  lk_divisor() = default;
  explicit lk_divisor(uint64_t divisor) : by(divisor), factor(1), halves(divisor > 1), shift(0) {
    if (divisor < 2 || divisor >> 32 != 0) return;
    while (((uint64_t)2 << shift) < divisor) shift++;
    factor = (uint32_t)(((((uint64_t)2 << shift) - divisor) << 32) / divisor) + 1;
  }
};

// decision 86
namespace {

struct Divided {
  uint64_t quotient, rest;
};

/* Apart, since a compiler would repeat its own short cuts wherever it stood. */
LK_APART uint64_t wide_quotient(uint64_t a, uint64_t b) { return a / b; }

LK_INLINE Divided divided(uint64_t a, const lk_divisor &b) {
  if ((a | b.by) >> 32 == 0) {
    const uint32_t n = (uint32_t)a, high = wide_product(b.factor, n).high;
    const uint32_t quotient = (high + ((n - high) >> b.halves)) >> b.shift;
    return {quotient, n - quotient * (uint32_t)b.by};
  }
  const uint64_t quotient = wide_quotient(a, b.by);
  return {quotient, a - quotient * b.by};
}

}  // namespace
