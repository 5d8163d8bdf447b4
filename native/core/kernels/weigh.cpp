// Sums of rows, of bytes with weights of 22 bits and of floats, and values turned so that columns become rows.
#include "core/kernels/lanes.h"
#include "core/kernels/table.h"

namespace {

/* A weight of the first or the second row of a pair, put together again. */
inline int32_t weight_of(const uint32_t *pair, int second) {
  const uint32_t low = pair[0] >> (16 * second) & 0x7fff;
  return (int32_t)(low + ((uint32_t)(int16_t)(pair[1] >> (16 * second)) << 15));
}

void weigh_few(uint8_t *out, const uint8_t *rows, size_t stride, const uint32_t *weights, size_t taps, size_t n) {
  for (size_t i = 0; i < n; i++) {
    uint32_t sum = 1u << 21;
    for (size_t k = 0; k < taps; k++) {
      sum += (uint32_t)rows[k * stride + i] * (uint32_t)weight_of(weights + (k & ~(size_t)1), (int)(k & 1));
    }
    const int32_t level = (int32_t)sum >> 22;
    out[i] = (uint8_t)(level < 0 ? 0 : level > 255 ? 255 : level);
  }
}

#if defined(__x86_64__)

#if LK_LANES == 16
typedef __m512i Bytes;
inline Bytes bytes(const uint8_t *p) { return _mm512_loadu_si512(p); }
inline void put(uint8_t *p, Bytes v) { _mm512_storeu_si512(p, v); }
inline Bytes all(uint32_t v) { return _mm512_set1_epi32((int)v); }
inline Bytes low_pairs(Bytes a, Bytes b) { return _mm512_unpacklo_epi8(a, b); }
inline Bytes high_pairs(Bytes a, Bytes b) { return _mm512_unpackhi_epi8(a, b); }
inline Bytes dot(Bytes a, Bytes b) { return _mm512_madd_epi16(a, b); }
inline Bytes sum(Bytes a, Bytes b) { return _mm512_add_epi32(a, b); }
inline Bytes times_2_15(Bytes a) { return _mm512_maskz_slli_epi32((__mmask16)-1, a, 15); }
inline Bytes over_2_22(Bytes a) { return _mm512_maskz_srai_epi32((__mmask16)-1, a, 22); }
inline Bytes packed(Bytes a, Bytes b, Bytes c, Bytes d) {
  return _mm512_packus_epi16(_mm512_packs_epi32(a, b), _mm512_packs_epi32(c, d));
}
#elif LK_LANES == 8
typedef __m256i Bytes;
inline Bytes bytes(const uint8_t *p) { return _mm256_loadu_si256((const __m256i *)p); }
inline void put(uint8_t *p, Bytes v) { _mm256_storeu_si256((__m256i *)p, v); }
inline Bytes all(uint32_t v) { return _mm256_set1_epi32((int)v); }
inline Bytes low_pairs(Bytes a, Bytes b) { return _mm256_unpacklo_epi8(a, b); }
inline Bytes high_pairs(Bytes a, Bytes b) { return _mm256_unpackhi_epi8(a, b); }
inline Bytes dot(Bytes a, Bytes b) { return _mm256_madd_epi16(a, b); }
inline Bytes sum(Bytes a, Bytes b) { return _mm256_add_epi32(a, b); }
inline Bytes times_2_15(Bytes a) { return _mm256_slli_epi32(a, 15); }
inline Bytes over_2_22(Bytes a) { return _mm256_srai_epi32(a, 22); }
inline Bytes packed(Bytes a, Bytes b, Bytes c, Bytes d) {
  return _mm256_packus_epi16(_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d));
}
#else
typedef __m128i Bytes;
inline Bytes bytes(const uint8_t *p) { return _mm_loadu_si128((const __m128i *)p); }
inline void put(uint8_t *p, Bytes v) { _mm_storeu_si128((__m128i *)p, v); }
inline Bytes all(uint32_t v) { return _mm_set1_epi32((int)v); }
inline Bytes low_pairs(Bytes a, Bytes b) { return _mm_unpacklo_epi8(a, b); }
inline Bytes high_pairs(Bytes a, Bytes b) { return _mm_unpackhi_epi8(a, b); }
inline Bytes dot(Bytes a, Bytes b) { return _mm_madd_epi16(a, b); }
inline Bytes sum(Bytes a, Bytes b) { return _mm_add_epi32(a, b); }
inline Bytes times_2_15(Bytes a) { return _mm_slli_epi32(a, 15); }
inline Bytes over_2_22(Bytes a) { return _mm_srai_epi32(a, 22); }
inline Bytes packed(Bytes a, Bytes b, Bytes c, Bytes d) {
  return _mm_packus_epi16(_mm_packs_epi32(a, b), _mm_packs_epi32(c, d));
}
#endif

/* One vector of bytes. Whole numbers wrap, so both halves of the weights may be summed apart. */
inline void weigh_vector(uint8_t *out, const uint8_t *rows, size_t stride, const uint32_t *weights, size_t taps) {
  const Bytes none = {};
  Bytes low[4] = {none, none, none, none}, high[4] = {none, none, none, none};
  for (size_t k = 0; k < taps; k += 2, rows += 2 * stride, weights += 2) {
    const Bytes a = bytes(rows), b = k + 1 < taps ? bytes(rows + stride) : a;
    const Bytes first = low_pairs(a, b), last = high_pairs(a, b);
    const Bytes pairs[4] = {low_pairs(first, none), high_pairs(first, none), low_pairs(last, none),
                            high_pairs(last, none)};
    const Bytes low_weights = all(weights[0]), high_weights = all(weights[1]);
    for (size_t q = 0; q < 4; q++) {
      low[q] = sum(low[q], dot(pairs[q], low_weights));
      high[q] = sum(high[q], dot(pairs[q], high_weights));
    }
  }
  Bytes level[4];
  for (size_t q = 0; q < 4; q++) level[q] = over_2_22(sum(sum(low[q], times_2_15(high[q])), all(1u << 21)));
  put(out, packed(level[0], level[1], level[2], level[3]));
}

void weigh_bytes(uint8_t *out, const uint8_t *rows, size_t stride, const uint32_t *weights, size_t taps, size_t n) {
  constexpr size_t kBytes = sizeof(Bytes);
  if (n < kBytes) return weigh_few(out, rows, stride, weights, taps, n);
  for (size_t i = 0; i + kBytes <= n; i += kBytes) weigh_vector(out + i, rows + i, stride, weights, taps);
  // the last ones overlap their neighbours
  if (n % kBytes != 0) weigh_vector(out + n - kBytes, rows + n - kBytes, stride, weights, taps);
}

#else

void weigh_bytes(uint8_t *__restrict out, const uint8_t *__restrict rows, size_t stride,
                 const uint32_t *__restrict weights, size_t taps, size_t n) {
  constexpr size_t kBytes = 64;
  size_t i = 0;
  for (; i + kBytes <= n; i += kBytes) {
    // a loop that the compiler vectorises
    uint32_t sums[kBytes];
    for (size_t b = 0; b < kBytes; b++) sums[b] = 1u << 21;
    for (size_t k = 0; k < taps; k++) {
      const uint8_t *row = rows + k * stride + i;
      const uint32_t weight = (uint32_t)weight_of(weights + (k & ~(size_t)1), (int)(k & 1));
      for (size_t b = 0; b < kBytes; b++) sums[b] += row[b] * weight;
    }
    for (size_t b = 0; b < kBytes; b++) {
      const int32_t level = (int32_t)sums[b] >> 22;
      out[i + b] = (uint8_t)(level < 0 ? 0 : level > 255 ? 255 : level);
    }
  }
  weigh_few(out + i, rows + i, stride, weights, taps, n - i);
}

#endif

/* ---- floats ---- */
/* Sums of N vectors side by side, which do not wait for each other. */
template <size_t N>
inline void weigh_vectors(float *out, const float *rows, size_t stride, const float *weights, size_t taps) {
  Doubles sums[N] = {};
  for (size_t k = 0; k < taps; k++, rows += stride) {
    const double weight = weights[k];
    // products of two floats are exact
    for (size_t v = 0; v < N; v++) sums[v] = rounded(sums[v] + widen(rows + v * kWide) * weight);
  }
  for (size_t v = 0; v < N; v++) store_narrow(out + v * kWide, sums[v]);
}

void weigh_floats(float *out, const float *rows, size_t stride, const float *weights, size_t taps, size_t n) {
  if (n < kWide) {
    for (size_t i = 0; i < n; i++) {
      float sum = 0.0f;
      for (size_t k = 0; k < taps; k++) sum = (float)(sum + (double)weights[k] * rows[k * stride + i]);
      out[i] = sum;
    }
    return;
  }
  // six: a strip of pixels of three colours is a multiple of it
  size_t i = 0;
  for (; i + 6 * kWide <= n; i += 6 * kWide) weigh_vectors<6>(out + i, rows + i, stride, weights, taps);
  for (; i + 2 * kWide <= n; i += 2 * kWide) weigh_vectors<2>(out + i, rows + i, stride, weights, taps);
  for (; i + kWide <= n; i += kWide) weigh_vectors<1>(out + i, rows + i, stride, weights, taps);
  // the last ones overlap their neighbours
  if (i < n) weigh_vectors<1>(out + n - kWide, rows + n - kWide, stride, weights, taps);
}

/* ---- columns as rows ---- */
typedef uint8_t Sixteen __attribute__((vector_size(16)));
typedef float Four __attribute__((vector_size(16)));

/* The first halves of both interleaved, and the last ones. */
inline Sixteen first_halves(Sixteen a, Sixteen b) {
  return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
}
inline Sixteen last_halves(Sixteen a, Sixteen b) {
  return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
}
inline Four first_halves(Four a, Four b) { return __builtin_shufflevector(a, b, 0, 4, 1, 5); }
inline Four last_halves(Four a, Four b) { return __builtin_shufflevector(a, b, 2, 6, 3, 7); }

/* As many vectors V as V has values. Rows r and r + half of them are interleaved: each round doubles what lies side by
 * side of one column. */
template <class V, class T>
inline void transpose(T *__restrict out, size_t out_stride, const T *__restrict x, size_t stride, size_t rows,
                      size_t columns) {
  constexpr size_t kSide = sizeof(V) / sizeof(T);
  const size_t whole_rows = rows / kSide * kSide, whole_columns = columns / kSide * kSide;
  for (size_t c = 0; c < whole_columns; c += kSide) {
    for (size_t r = 0; r < whole_rows; r += kSide) {
      V v[kSide], w[kSide];
      for (size_t k = 0; k < kSide; k++) __builtin_memcpy(&v[k], x + (r + k) * stride + c, sizeof(V));
      for (size_t done = 1; done < kSide; done *= 2) {
        for (size_t k = 0; k < kSide / 2; k++) {
          w[2 * k] = first_halves(v[k], v[k + kSide / 2]);
          w[2 * k + 1] = last_halves(v[k], v[k + kSide / 2]);
        }
        for (size_t k = 0; k < kSide; k++) v[k] = w[k];
      }
      for (size_t k = 0; k < kSide; k++) __builtin_memcpy(out + (c + k) * out_stride + r, &v[k], sizeof(V));
    }
  }
  for (size_t r = 0; r < rows; r++) {
    for (size_t c = r < whole_rows ? whole_columns : 0; c < columns; c++) out[c * out_stride + r] = x[r * stride + c];
  }
}

void transpose_bytes(uint8_t *out, size_t out_stride, const uint8_t *x, size_t stride, size_t rows, size_t columns) {
  transpose<Sixteen>(out, out_stride, x, stride, rows, columns);
}

void transpose_floats(float *out, size_t out_stride, const float *x, size_t stride, size_t rows, size_t columns) {
  transpose<Four>(out, out_stride, x, stride, rows, columns);
}

}  // namespace

extern "C" void LK_JOIN(weigh, LK_ISA)(lk_kernels *table) {
  table->transpose_bytes = transpose_bytes;
  table->transpose_floats = transpose_floats;
  table->weigh_bytes = weigh_bytes;
  table->weigh_floats = weigh_floats;
}
