/* Coefficients of sums of floats. */
#pragma once

#include "shared/inline.h"

/* A double as two floats: 48 of its bits, where none of them is below the smallest float. */
struct lk_coefficient {
  float high, low;
};

namespace {

LK_INLINE lk_coefficient split(double value) {
  const float high = (float)value;
  const double rest = value - (double)high;
  // past the largest float nothing is left
  return {high, rest - rest == 0 ? (float)rest : 0.0f};
}

}  // namespace
