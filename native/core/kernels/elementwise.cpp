// Element by element: one loop, for operations that take vectors and single floats alike.
#include "shared/elementwise.h"
#include "lanes.h"
#include "shared/weighted_sum.h"
#include "table.h"

namespace {

/* Writes the first elements of n, up to where out is aligned, and returns their number: a store across two lines of the
 * cache takes twice as long. */
template <class At>
inline size_t fill_head(float *out, size_t copies, size_t pitch, size_t n, At at) {
  const size_t head = n < kLanes ? 0 : until_aligned(out, n);
  if (head == 0) return 0;
  const Floats values = at(0);
  for (size_t copy = 0; copy < copies; copy++) __builtin_memcpy(out + copy * pitch, &values, head * sizeof(float));
  return head;
}

/* at(i) gives a vector of results, one(i) a single one. */
template <class At, class One>
inline void fill(float *out, size_t n, int stream, At at, One one) {
  size_t i = fill_head(out, 1, 0, n, at);
  if (stream) {
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

/* Operands and their coefficients: copies, which no store through `out` can change. */
template <unsigned N>
struct Terms {
  const float *x[N];
  lk_coefficient coefficients[N];

  inline Floats at(size_t i) const {
    Floats values[N];
    for (unsigned k = 0; k < N; k++) values[k] = in_register(load(x[k] + i));
    return weighted_sum(N, coefficients, [&](unsigned k) { return values[k]; });
  }
};

/* Apart, since a compiler would make loops of it. As a vector: not every C library has a fused product that is right.
 */
template <unsigned N>
__attribute__((noinline)) float one_sum(const Terms<N> &terms, size_t i) {
  // -0 stays -0
  return weighted_sum(N, terms.coefficients, [&](unsigned k) { return terms.x[k][i] - Floats{}; })[0];
}

/* Floats between a store and the line that is fetched for a later one. */
constexpr size_t kAhead = 128;

/* fill() into `copies` outputs: stores alone would fetch one line of the second cache after the other. */
template <class At, class One>
inline void fill_copies(float *out, size_t copies, size_t pitch, size_t n, At at, One one) {
  size_t i = fill_head(out, copies, pitch, n, at);
  for (; i + kLanes <= n; i += kLanes) {
    for (size_t copy = 0; copy < copies; copy++) __builtin_prefetch(out + copy * pitch + i + kAhead, 1);
    const Floats values = at(i);
    for (size_t copy = 0; copy < copies; copy++) store(out + copy * pitch + i, values);
  }
  for (; i < n; i++) {
    const float value = one(i);
    for (size_t copy = 0; copy < copies; copy++) out[copy * pitch + i] = value;
  }
}

void weighted_sum(float *out, size_t copies, size_t pitch, const float *const *x, const double *coefficients,
                  size_t count, size_t n, int stream) {
  with_count(count, [=](auto terms_of) {
    constexpr unsigned kTerms = decltype(terms_of)::value;
    Terms<kTerms> terms;
    for (unsigned k = 0; k < kTerms; k++) terms.x[k] = x[k], terms.coefficients[k] = split(coefficients[k]);
    const auto at = [=](size_t i) { return terms.at(i); };
    const auto one = [=](size_t i) { return one_sum(terms, i); };
    switch (copies) {
      case 1: return fill(out, n, stream, at, one);
      case 2: return fill_copies(out, 2, pitch, n, at, one);
      default: return fill_copies(out, copies, pitch, n, at, one);
    }
  });
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
}
