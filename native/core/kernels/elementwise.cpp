// Element by element: one loop, for operations that take vectors and single floats alike.
#include "shared/elementwise.h"

#include "lanes.h"
#include "table.h"

namespace {

/* at(i) gives a vector of results, one(i) a single one. */
template <class At, class One>
inline void fill(float *out, size_t n, int stream, At at, One one) {
  size_t i = 0;
  if (stream) {
    for (size_t head = until_aligned(out, n); i < head; i++) out[i] = one(i);
    for (; i + kLanes <= n; i += kLanes) store_stream(out + i, at(i));
    end_stream();
  } else {
    for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
      Floats first = at(i), second = at(i + kLanes);
      store(out + i, first);
      store(out + i + kLanes, second);
    }
  }
  for (; i + kLanes <= n; i += kLanes) store(out + i, at(i));
  for (; i < n; i++) out[i] = one(i);
}

template <class Op>
inline void map(float *out, const float *x, size_t n, int stream, Op op) {
  fill(
      out, n, stream, [=](size_t i) { return op(load(x + i)); }, [=](size_t i) { return op(x[i]); });
}

template <class Op>
inline void map(float *out, const float *x, const float *y, size_t n, int stream, Op op) {
  fill(
      out, n, stream, [=](size_t i) { return op(load(x + i), load(y + i)); }, [=](size_t i) { return op(x[i], y[i]); });
}

template <class Op>
inline void map(float *out, const float *x, const float *y, const float *z, size_t n, int stream, Op op) {
  fill(
      out, n, stream, [=](size_t i) { return op(load(x + i), load(y + i), load(z + i)); },
      [=](size_t i) { return op(x[i], y[i], z[i]); });
}

void scale(float *out, const float *x, float k, size_t n, int stream) { map(out, x, n, stream, Scale{k}); }

void divide(float *out, const float *x, float k, size_t n, int stream) { map(out, x, n, stream, Divide{k}); }

void axpy(float *out, const float *x, const float *y, float k, size_t n, int stream) {
  map(out, x, y, n, stream, Axpy{k});
}

void average(float *out, const float *x, const float *y, size_t n, int stream) { map(out, x, y, n, stream, Average{}); }

void lerp(float *out, const float *a, const float *b, float t, size_t n, int stream) {
  map(out, a, b, n, stream, Lerp{t});
}

void mix(float *out, const float *x, const float *y, float p, float q, float d, size_t n, int stream) {
  map(out, x, y, n, stream, Mix{p, q, d});
}

void blend(float *out, const float *a, const float *b, const float *mask, size_t n, int stream) {
  map(out, mask, a, b, n, stream, Blend{});
}

void add_product(float *out, const float *base, const float *x, const float *mask, size_t n, int stream) {
  map(out, base, x, mask, n, stream, AddProduct{});
}

/* Apart: of the few elements at the ends a compiler would make vectors too, for each number of terms. */
__attribute__((noinline)) float one_sum(const float *const *x, const double *coefficients, size_t count, size_t i) {
  return (float)weighted_sum((unsigned)count, coefficients, [=](unsigned k) { return (double)x[k][i]; });
}

/* Operands and their coefficients: copies, which no store through `out` can change. */
template <unsigned N>
struct Terms {
  const float *x[N];
  double coefficients[N];

  inline Doubles wide(size_t i) const {
    return weighted_sum(N, coefficients, [&](unsigned k) { return widen(x[k] + i); });
  }
};

void weighted_sum(float *out, const float *const *x, const double *coefficients, size_t count, size_t n, int stream) {
  with_count(count, [=](auto terms_of) {
    constexpr unsigned kTerms = decltype(terms_of)::value;
    Terms<kTerms> terms;
    for (unsigned k = 0; k < kTerms; k++) terms.x[k] = x[k], terms.coefficients[k] = coefficients[k];
    fill(
        out, n, stream, [=](size_t i) { return narrow(terms.wide(i), terms.wide(i + kWide)); },
        [=](size_t i) { return one_sum(x, coefficients, count, i); });
  });
}

void bridge(float *left, float *right, const float *w, float length, float reciprocal, float spread, size_t n) {
  const Bridge op{length, reciprocal, spread};
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const Floats whole = load(w + i), half = op(whole, load(left + i));
    store(left + i, half);
    if (right != nullptr) store(right + i, whole - half);
  }
  for (; i < n; i++) {
    left[i] = op(w[i], left[i]);
    if (right != nullptr) right[i] = w[i] - left[i];
  }
}

void divided_sum(float *out, const float *const *terms, size_t count, float divisor, size_t n) {
  constexpr size_t kVectors = 4; /* sums under way at once */
  size_t i = 0;
  for (; i + kVectors * kLanes <= n; i += kVectors * kLanes) {
    Floats sums[kVectors];
    for (size_t v = 0; v < kVectors; v++) sums[v] = load(terms[0] + i + v * kLanes);
    for (size_t k = 1; k < count; k++) {
      for (size_t v = 0; v < kVectors; v++) sums[v] += load(terms[k] + i + v * kLanes);
    }
    for (size_t v = 0; v < kVectors; v++) store(out + i + v * kLanes, sums[v] / divisor);
  }
  for (; i < n; i++) {
    float sum = terms[0][i];
    for (size_t k = 1; k < count; k++) sum += terms[k][i];
    out[i] = sum / divisor;
  }
}

}  // namespace

extern "C" void LK_JOIN(elementwise, LK_ISA)(lk_kernels *table) {
  table->scale = scale;
  table->divide = divide;
  table->axpy = axpy;
  table->average = average;
  table->lerp = lerp;
  table->weighted_sum = weighted_sum;
  table->mix = mix;
  table->blend = blend;
  table->add_product = add_product;
  table->bridge = bridge;
  table->divided_sum = divided_sum;
}
