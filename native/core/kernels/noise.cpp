// Both noise streams: MT19937 with PyTorch's CPU pairing, Philox with its CUDA pairing.
#include "lanes.h"
#include "shared/normals.h"
#include "table.h"

namespace {

/* far ^ twist(high, low) */
inline Words next_words(Words far, Words high, Words low) {
#if defined(__AVX512F__)
  // five instructions where g++ 12 makes seven
  const __m512i mixed =
      _mm512_ternarylogic_epi32(_mm512_set1_epi32((int)0x80000000u), (__m512i)high, (__m512i)low, 0xca);
  const __m512i shifted = (__m512i)far ^ _mm512_maskz_srli_epi32((__mmask16)-1, mixed, 1);
  const __mmask16 is_odd = _mm512_test_epi32_mask(mixed, _mm512_set1_epi32(1));
  return (Words)_mm512_mask_xor_epi32(shifted, is_odd, shifted, _mm512_set1_epi32((int)0x9908b0dfu));
#else
  Words mixed = (high & 0x80000000u) | (low & 0x7fffffffu);
  // not of low: it would be loaded twice
  return far ^ (mixed >> 1) ^ ((-(mixed & 1u)) & 0x9908b0dfu);
#endif
}

inline uint32_t twist(uint32_t high, uint32_t low) {
  uint32_t mixed = (high & 0x80000000u) | (low & 0x7fffffffu);
  return (mixed >> 1) ^ ((0u - (low & 1u)) & 0x9908b0dfu);
}

/* The vector from the second word of `words`, which lie at `at`, followed by `after`. */
inline Words one_later(Words words, Words after, const uint32_t *at) {
#if LK_LANES == 16
  // a load across two lines takes twice as long
  (void)at;
  return (Words)_mm512_maskz_alignr_epi32((__mmask16)-1, (__m512i)after, (__m512i)words, 1);
#else
  (void)words, (void)after;
  return load(at + 1);
#endif
}

/* Words between a store and the line that is fetched for a later one: `far` reads what was stored a moment ago. Vectors
 * of less than a line gain nothing by it. */
constexpr size_t kAhead = 128;

/* out[i] = far[i] ^ twist(near[i], near[i + 1]); far may end where out begins, at least a vector earlier. */
inline void recur(uint32_t *out, const uint32_t *near, const uint32_t *far, size_t n) {
  size_t i = 0, whole = n - n % kLanes;
  Words high = load(near);
  for (; i < whole; i += kLanes) {
    const Words after = load(near + i + kLanes);
    if (kLanes == 16) __builtin_prefetch(out + i + kAhead, 1);
    store(out + i, next_words(load(far + i), high, one_later(high, after, near + i)));
    high = after;
  }
  for (; i < n; i++) out[i] = far[i] ^ twist(near[i], near[i + 1]);
}

// the recurrence looks back 624, 623 and 227 words, so the words themselves are all the state there is
void mt_extend(uint32_t *state, uint32_t *out, size_t n) {
  recur(out, state, state + 397, 227);
  recur(out + 227, state + 227, out, 396);
  out[623] = out[396] ^ twist(state[623], out[0]);
  recur(out + 624, out, out + 397, n - 624);
  __builtin_memcpy(state, out + (n - 624), 624 * sizeof(uint32_t));
}

/* Word i of a state after word i - 1. */
template <class Word>
inline Word seeded(Word word, uint32_t i) {
  return 1812433253u * (word ^ (word >> 30)) + i;
}

template <size_t kChains>
void seed_chains(uint32_t *states, size_t pitch, const uint32_t *seeds) {
  uint32_t words[kChains];
  for (size_t k = 0; k < kChains; k++) words[k] = seeds[k];
  for (uint32_t i = 0; i < LK_MT_WORDS; i++) {
    for (size_t k = 0; k < kChains; k++) {
      states[k * pitch + i] = words[k];
      words[k] = seeded(words[k], i + 1);
    }
  }
}

#if LK_LANES == 16
/* One of the instructions that pair two vectors. The unmasked intrinsics read a register that g++ takes for
 * uninitialised. */
#define LK_PAIR32(name, ...) _mm512_maskz_##name((__mmask16)-1, __VA_ARGS__)
#define LK_PAIR64(name, ...) _mm512_maskz_##name((__mmask8)-1, __VA_ARGS__)

/* Element j of row i and element i of row j change places. */
inline void transpose(__m512i *rows) {
  __m512i pairs[16], fours[16];
  for (int i = 0; i < 16; i += 2) {
    pairs[i] = LK_PAIR32(unpacklo_epi32, rows[i], rows[i + 1]);
    pairs[i + 1] = LK_PAIR32(unpackhi_epi32, rows[i], rows[i + 1]);
  }
  // fours[4 a + b] holds elements b, 4 + b, 8 + b and 12 + b of rows 4 a to 4 a + 3, a quarter each
  for (int i = 0; i < 16; i += 4) {
    for (int k = 0; k < 2; k++) {
      fours[i + 2 * k] = LK_PAIR64(unpacklo_epi64, pairs[i + k], pairs[i + 2 + k]);
      fours[i + 2 * k + 1] = LK_PAIR64(unpackhi_epi64, pairs[i + k], pairs[i + 2 + k]);
    }
  }
  for (int b = 0; b < 4; b++) {
    const __m512i even = LK_PAIR32(shuffle_i32x4, fours[b], fours[4 + b], 0x88);
    const __m512i odd = LK_PAIR32(shuffle_i32x4, fours[b], fours[4 + b], 0xdd);
    const __m512i late_even = LK_PAIR32(shuffle_i32x4, fours[8 + b], fours[12 + b], 0x88);
    const __m512i late_odd = LK_PAIR32(shuffle_i32x4, fours[8 + b], fours[12 + b], 0xdd);
    rows[b] = LK_PAIR32(shuffle_i32x4, even, late_even, 0x88);
    rows[4 + b] = LK_PAIR32(shuffle_i32x4, odd, late_odd, 0x88);
    rows[8 + b] = LK_PAIR32(shuffle_i32x4, even, late_even, 0xdd);
    rows[12 + b] = LK_PAIR32(shuffle_i32x4, odd, late_odd, 0xdd);
  }
}

/* Seeds a vector of streams. */
void seed_vector(uint32_t *states, size_t pitch, const uint32_t *seeds) {
  static_assert(LK_SEEDED_AT_ONCE == kLanes && LK_MT_WORDS % kLanes == 0);
  Words word = load(seeds);
  for (uint32_t begin = 0; begin < LK_MT_WORDS; begin += kLanes) {
    __m512i rows[kLanes];
    for (uint32_t i = 0; i < kLanes; i++) {
      rows[i] = (__m512i)word;
      word = seeded(word, begin + i + 1);
    }
    transpose(rows);
    for (size_t k = 0; k < kLanes; k++) store(states + k * pitch + begin, (Words)rows[k]);
  }
}
#endif

constexpr size_t kChains = 8; /* fill the multiplier, and their words fit into registers */

void mt_seed(uint32_t *states, size_t pitch, const uint32_t *seeds, size_t count) {
  if (count == 1) return seed_chains<1>(states, pitch, seeds);
#if LK_LANES == 16
  if (count > kChains) return seed_vector(states, pitch, seeds);
#endif
  for (size_t k = 0; k < count; k += kChains) seed_chains<kChains>(states + k * pitch, pitch, seeds + k);
}

/* A raw word tempered, its low 24 bits: a uniform in units of 2^-24. */
inline Words tempered(Words w) {
  w ^= w >> 11;
  w ^= (w << 7) & 0x9d2c5680u;
  w ^= (w << 15) & 0xefc60000u;
  w ^= w >> 18;
  return w & 0xffffffu;
}

constexpr size_t kPairs = 8; /* of a block: their words for radii, then those for angles */
constexpr size_t kBlock = 2 * kPairs;
constexpr size_t kMostBlocks = 32;

/* Writes uniforms for the radii and the angles of a block. */
inline void split_block(const uint32_t *words, uint32_t *radii, uint32_t *angles) {
#if LK_LANES == 16
  // a half is stored without a shuffle
  const __m512i uniforms = (__m512i)tempered(load(words));
  _mm256_storeu_si256((__m256i *)radii, _mm512_castsi512_si256(uniforms));
  _mm256_storeu_si256((__m256i *)angles, _mm512_extracti64x4_epi64(uniforms, 1));
#else
  for (size_t j = 0; j < kPairs; j += kLanes) {
    store(radii + j, tempered(load(words + j)));
    store(angles + j, tempered(load(words + kPairs + j)));
  }
#endif
}

/* Writes normals of pairs from i on into their blocks. */
inline void store_pairs(float *out, size_t i, Floats first, Floats second) {
  float *p = out + i / kPairs * kBlock + i % kPairs;
#if LK_LANES == 16
  _mm256_storeu_ps(p, _mm512_castps512_ps256((__m512)first));
  _mm256_storeu_ps(p + kPairs, _mm512_castps512_ps256((__m512)second));
  _mm256_storeu_ps(p + kBlock, _mm512_extractf32x8_ps((__m512)first, 1));
  _mm256_storeu_ps(p + kBlock + kPairs, _mm512_extractf32x8_ps((__m512)second, 1));
#else
  store(p, first);
  store(p + kPairs, second);
#endif
}

// three loops with short chains: more of them are under way at once than of one long one
inline void mt_blocks(float *out, const uint32_t *words, size_t blocks) {
  alignas(64) uint32_t radii[kMostBlocks * kPairs], angles[kMostBlocks * kPairs];
  const size_t n = blocks * kPairs;
  for (size_t i = 0; i < n; i += kPairs) split_block(words + 2 * i, radii + i, angles + i);
  for (size_t i = 0; i < n; i += kLanes) {
    const Floats uniforms = to_floats((Ints)(0x1000000u - load(radii + i)));
    store(radii + i, (Words)bits_of(minus_two_logarithm(uniforms, 24)));
  }
  for (size_t i = 0; i < n; i += kLanes) {
    Floats r = root((Floats)load(radii + i)), s, c;
    Ints k = (Ints)load(angles + i);
    // for all 2^24 angles the octant is that of the float
    sine_cosine(to_floats(k) * (6.2831855f * 0x1p-24f), k, &s, &c);
    store_pairs(out, i, product(r, c), product(r, s));
  }
}

void mt_normals(float *out, const uint32_t *words, size_t blocks) {
  constexpr size_t kAtOnce = kLanes > kPairs ? kLanes / kPairs : 1; /* blocks of a vector of pairs */
  const size_t whole = blocks - blocks % kAtOnce;
  size_t i = 0;
  for (; i + kMostBlocks <= whole; i += kMostBlocks) mt_blocks(out + i * kBlock, words + i * kBlock, kMostBlocks);
  mt_blocks(out + i * kBlock, words + i * kBlock, whole - i);
  if (whole < blocks) {
    uint32_t last[kAtOnce * kBlock] = {};
    float normals[kAtOnce * kBlock];
    __builtin_memcpy(last, words + whole * kBlock, sizeof(uint32_t) * kBlock);
    mt_blocks(normals, last, kAtOnce);
    __builtin_memcpy(out + whole * kBlock, normals, sizeof(float) * kBlock);
  }
}

constexpr size_t kGroup = 64;

/* One group of counters; the loops are plain so that the compiler may use its widening multiplications. */
void philox_group(uint32_t (*words)[kGroup], uint64_t seed, uint64_t row, uint64_t thread) {
  PhiloxKey key = philox_key(seed);
  uint32_t *c0 = words[0], *c1 = words[1], *c2 = words[2], *c3 = words[3];
  for (size_t i = 0; i < kGroup; i++) {
    uint64_t t = thread + i;
    c0[i] = (uint32_t)row;
    c1[i] = (uint32_t)(row >> 32);
    c2[i] = (uint32_t)t;
    c3[i] = (uint32_t)(t >> 32);
  }
  for (int round = 0; round < kPhiloxRounds; round++) {
    for (size_t i = 0; i < kGroup; i++) {
      philox_round(&c0[i], &c1[i], &c2[i], &c3[i], key);
    }
    philox_bump(&key);
  }
}

void philox_words(uint32_t *const out[4], size_t n, uint64_t seed, uint64_t row, uint64_t thread) {
  uint32_t words[4][kGroup];
  for (size_t i = 0; i < n; i += kGroup) {
    size_t count = n - i < kGroup ? n - i : kGroup;
    philox_group(words, seed, row, thread + i);
    for (int k = 0; k < 4; k++) __builtin_memcpy(out[k] + i, words[k], count * sizeof(uint32_t));
  }
}

void philox_normals(float *const lanes[4], size_t n, uint64_t seed, uint64_t row, uint64_t thread, float k) {
  uint32_t words[4][kGroup];
  float normals[4][kGroup];
  int pairs = lanes[2] == nullptr ? 1 : 2;
  for (size_t i = 0; i < n; i += kGroup) {
    size_t count = n - i < kGroup ? n - i : kGroup;
    philox_group(words, seed, row, thread + i);
    for (int p = 0; p < pairs; p++) {
      for (size_t j = 0; j < kGroup; j += kLanes) {
        Floats s, c;
        philox_pair(load(words[2 * p] + j), load(words[2 * p + 1] + j), &s, &c);
        store(normals[2 * p] + j, s * k);
        store(normals[2 * p + 1] + j, c * k);
      }
    }
    for (int lane = 0; lane < 4 && lanes[lane] != nullptr; lane++) {
      __builtin_memcpy(lanes[lane] + i, normals[lane], count * sizeof(float));
    }
  }
}

}  // namespace

extern "C" void LK_JOIN(noise, LK_ISA)(lk_kernels *table) {
  table->mt_seed = mt_seed;
  table->mt_extend = mt_extend;
  table->mt_normals = mt_normals;
  table->philox_words = philox_words;
  table->philox_normals = philox_normals;
}
