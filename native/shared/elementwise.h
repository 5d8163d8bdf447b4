/* The operations element by element, for single floats and for vectors of them; the including file defines `fused` of
 * both before. */
#pragma once

#include <stddef.h>

#include "shared/coefficient.h"
#include "shared/inline.h"

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

/* The left half of a cut increment w, of normals z. */
struct Bridge {
  float length, reciprocal, spread;
  template <class V>
  LK_INLINE V operator()(V w, V z) const {
    return w * length * reciprocal + z * spread;
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

/* The sum of coefficients[k] * value(k) over `count` floats, or vectors of them: the small halves of the coefficients
 * first, then the large ones, so that the roundings are those of a sum with the doubles themselves. */
template <class Value>
LK_INLINE auto weighted_sum(unsigned count, const lk_coefficient *coefficients, Value value) {
  auto sum = value(0) * coefficients[0].low;
  for (unsigned k = 1; k < count; k++) sum = fused(value(k), coefficients[k].low, sum);
  for (unsigned k = 0; k < count; k++) sum = fused(value(k), coefficients[k].high, sum);
  return sum;
}

template <unsigned N>
struct Count {
  static constexpr unsigned value = N;
};

/* body(Count<count>), count from 1 to 8: loops over the terms of a sum must be unrolled. */
template <class Body>
LK_INLINE void with_count(size_t count, Body body) {
  switch (count) {
    case 1: return body(Count<1>{});
    case 2: return body(Count<2>{});
    case 3: return body(Count<3>{});
    case 4: return body(Count<4>{});
    case 5: return body(Count<5>{});
    case 6: return body(Count<6>{});
    case 7: return body(Count<7>{});
    case 8: return body(Count<8>{});
    default: return;
  }
}

}  // namespace
