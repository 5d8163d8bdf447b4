// Both noise streams: MT19937 with PyTorch's CPU pairing, Philox with its CUDA pairing.
#include "lanes.h"
#include "shared/gaussian.h"
#include "shared/philox.h"
#include "table.h"

namespace {

inline Words twist(Words high, Words low) {
  Words mixed = (high & 0x80000000u) | (low & 0x7fffffffu);
  // not of low: it would be loaded twice
  return (mixed >> 1) ^ ((-(mixed & 1u)) & 0x9908b0dfu);
}

inline uint32_t twist(uint32_t high, uint32_t low) {
  uint32_t mixed = (high & 0x80000000u) | (low & 0x7fffffffu);
  return (mixed >> 1) ^ ((0u - (low & 1u)) & 0x9908b0dfu);
}

/* out[i] = far[i] ^ twist(near[i], near[i + 1]); far may end where out begins, at least a vector earlier. */
inline void recur(uint32_t *out, const uint32_t *near, const uint32_t *far, size_t n) {
  size_t i = 0, whole = n - n % kLanes;
  for (; i < whole; i += kLanes) store(out + i, load(far + i) ^ twist(load(near + i), load(near + i + 1)));
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

/* A raw word tempered, its low 24 bits: a uniform in units of 2^-24. */
inline Ints tempered(Floats raw) {
  Words w = (Words)raw;
  w ^= w >> 11;
  w ^= (w << 7) & 0x9d2c5680u;
  w ^= (w << 15) & 0xefc60000u;
  w ^= w >> 18;
  return (Ints)(w & 0xffffffu);
}

constexpr size_t kPairBlock = 16; /* eight words of radii, eight of angles */
constexpr size_t kStep = kLanes == 16 ? 2 * kPairBlock : kPairBlock;
constexpr size_t kParts = kStep / 2 / kLanes;
constexpr size_t kSteps = 16;

/* Part j of a step: the words that make radii and those that make angles. */
inline void load_halves(const float *p, size_t j, Floats *first, Floats *second) {
#if LK_LANES == 16
  Floats a = load(p + j), b = load(p + 16);
  *first = low_halves(a, b);
  *second = high_halves(a, b);
#else
  *first = load(p + j);
  *second = load(p + 8 + j);
#endif
}
inline void store_halves(float *p, size_t j, Floats first, Floats second) {
#if LK_LANES == 16
  store(p + j, low_halves(first, second));
  store(p + 16, high_halves(first, second));
#else
  store(p + j, first);
  store(p + 8 + j, second);
#endif
}

// three loops with short chains: more of them are under way at once than of one long one
inline void mt_steps(float *words, size_t steps) {
  alignas(64) float radii[kSteps * kParts * kLanes];
  alignas(64) uint32_t angles[kSteps * kParts * kLanes];
  size_t n = steps * kParts;
  for (size_t i = 0; i < n; i++) {
    Floats first, second;
    load_halves(words + i / kParts * kStep, i % kParts * kLanes, &first, &second);
    store(radii + i * kLanes, to_floats(0x1000000 - tempered(first)));
    store(angles + i * kLanes, (Words)tempered(second));
  }
  for (size_t i = 0; i < n; i++) store(radii + i * kLanes, minus_two_logarithm(load(radii + i * kLanes), 24));
  for (size_t i = 0; i < n; i++) {
    Floats r = root(load(radii + i * kLanes)), s, c;
    Ints k = (Ints)load(angles + i * kLanes);
    // for all 2^24 angles the octant is that of the float
    sine_cosine(to_floats(k) * (6.2831855f * 0x1p-24f), k, &s, &c);
    store_halves(words + i / kParts * kStep, i % kParts * kLanes, product(r, c), product(r, s));
  }
}

void mt_normals(float *words, size_t blocks) {
  size_t steps = blocks * kPairBlock / kStep, i = 0;
  for (; i + kSteps <= steps; i += kSteps) mt_steps(words + i * kStep, kSteps);
  mt_steps(words + i * kStep, steps - i);
#if LK_LANES == 16
  if (blocks % 2 != 0) {
    float last[kStep] = {};
    float *p = words + (blocks - 1) * kPairBlock;
    __builtin_memcpy(last, p, kPairBlock * sizeof(float));
    mt_steps(last, 1);
    __builtin_memcpy(p, last, kPairBlock * sizeof(float));
  }
#endif
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
  table->mt_extend = mt_extend;
  table->mt_normals = mt_normals;
  table->philox_words = philox_words;
  table->philox_normals = philox_normals;
}
