/* The operations element by element, for single floats and for vectors of them, and coefficients of sums. */
#pragma once

#include "shared/inline.h"

/* A double as two floats: 48 of its bits, unless some are below the smallest float. */
struct lk_coefficient {
  float high, low;
};

namespace {

struct Scale {
  float k;
  template <class V>
  LK_INLINE V operator()(V v) const {
    return v * k;
  }
};

struct Divide {
  float k;
  template <class V>
  LK_INLINE V operator()(V v) const {
    return v / k;
  }
};

struct Axpy {
  float k;
  template <class V>
  LK_INLINE V operator()(V x, V y) const {
    return x + y * k;
  }
};

struct Average {
  template <class V>
  LK_INLINE V operator()(V x, V y) const {
    return (x + y) * 0.5f;
  }
};

struct Lerp {
  float t;
  template <class V>
  LK_INLINE V operator()(V a, V b) const {
    return a + (b - a) * t;
  }
};

/* (p * x + q * y) / d */
struct Mix {
  float p, q, d;
  template <class V>
  LK_INLINE V operator()(V x, V y) const {
    return (p * x + q * y) / d;
  }
};

struct Blend {
  template <class V>
  LK_INLINE V operator()(V m, V a, V b) const {
    return m * a + (1.0f - m) * b;
  }
};

/* base + x * mask */
struct AddProduct {
  template <class V>
  LK_INLINE V operator()(V base, V x, V mask) const {
    return base + x * mask;
  }
};

LK_INLINE lk_coefficient split(double value) {
  const float high = (float)value;
  const double rest = value - (double)high;
  // past the largest float nothing is left
  return {high, rest - rest == 0 ? (float)rest : 0.0f};
}

}  // namespace
