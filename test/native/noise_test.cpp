// Both generators against plain scalar code written from their definitions.
#include <cmath>
#include <random>

#include "check.h"
#include "kernels/table.h"
#include "lk_libm.h"

namespace {

float reference_log(float x) {
  int e;
  float m = std::frexp(x, &e), t;
  if (m < 0.70710678f) {
    e -= 1;
    t = (m - 1.0f) + m;
  } else {
    t = m - 1.0f;
  }
  float z = t * t, y = 7.0376836292e-2f, f = static_cast<float>(e);
  for (float c : {-1.1514610310e-1f, 1.1676998740e-1f, -1.2420140846e-1f, 1.4249322787e-1f, -1.6668057665e-1f,
                  2.0000714765e-1f, -2.4999993993e-1f, 3.3333331174e-1f}) {
    y = std::fmaf(y, t, c);
  }
  y = y * t;
  y = std::fmaf(y, z, f * -2.12194440e-4f);
  y = std::fmaf(-z, 0.5f, y);
  return std::fmaf(f, 0.693359375f, t + y);
}

void reference_pair(float u, float a, float *with_cosine, float *with_sine) {
  int q = (static_cast<int>(a * 1.27323954473516f) + 1) & ~1;
  float f = static_cast<float>(q);
  a = std::fmaf(f, -0.78515625f, a);
  a = std::fmaf(f, -2.4187564849853515625e-4f, a);
  a = std::fmaf(f, -3.77489497744594108e-8f, a);
  float z = a * a;
  float c = std::fmaf(2.443315711809948e-5f, z, -1.388731625493765e-3f);
  c = std::fmaf(c, z, 4.166664568298827e-2f) * z;
  c = std::fmaf(c, z, -(0.5f * z)) + 1.0f;
  float s = std::fmaf(-1.9515295891e-4f, z, 8.3321608736e-3f);
  s = std::fmaf(s, z, -1.6666654611e-1f) * z;
  s = std::fmaf(s, a, a);
  float sine = (q & 2) == 0 ? s : c, cosine = (q & 2) == 0 ? c : s;
  if (q & 4) sine = -sine;
  if (((q - 2) & 4) == 0) cosine = -cosine;
  float r = std::sqrt(-2.0f * reference_log(u));
  *with_cosine = std::fmaf(r * cosine, 1.0f, 0.0f);
  *with_sine = std::fmaf(r * sine, 1.0f, 0.0f);
}

struct Reference {
  std::mt19937 generator;
  bool has_normal = false;
  double normal = 0.0;

  explicit Reference(uint64_t seed) : generator(static_cast<uint32_t>(seed)) {}

  float uniform() { return static_cast<float>(generator() & 0xffffffu) * 0x1p-24f; }

  double uniform53() {
    uint64_t high = generator();
    return static_cast<double>((high << 32 | generator()) & ((uint64_t{1} << 53) - 1)) * 0x1p-53;
  }

  void block(float *values) {
    for (int j = 0; j < 8; j++) {
      float u = 1.0f - values[j], a = 6.2831855f * values[j + 8];
      reference_pair(u, a, &values[j], &values[j + 8]);
    }
  }

  std::vector<float> randn(size_t n) {
    std::vector<float> values(n);
    if (n < 16) {
      for (float &value : values) {
        if (has_normal) {
          value = static_cast<float>(normal);
          has_normal = false;
          continue;
        }
        double u1 = uniform53(), u2 = uniform53();
        double radius = std::sqrt(-2.0 * lk_log1p(-u2)), angle = 6.283185307179586 * u1;
        normal = radius * lk_sin(angle);
        has_normal = true;
        value = static_cast<float>(radius * lk_cos(angle));
      }
      return values;
    }
    for (float &value : values) value = uniform();
    for (size_t i = 0; i + 16 <= n; i += 16) block(&values[i]);
    if (n % 16 != 0) {
      for (size_t i = n - 16; i < n; i++) values[i] = uniform();
      block(&values[n - 16]);
    }
    return values;
  }
};

void append(std::vector<float> &all, const std::vector<float> &more) {
  all.insert(all.end(), more.begin(), more.end());
}

void cpu_stream() {
  const std::vector<size_t> calls = {1, 1,    16,  3,     17, 1,    624,   623, 625,    31, 1248, 15,
                                     0, 4097, 100, 65536, 33, 2500, 65537, 5,   200001, 7,  16,   640};
  for (uint64_t seed : {uint64_t{0}, uint64_t{42}, uint64_t{0xffffffffffffffff}}) {
    std::vector<float> got = everywhere([&] {
      engine_mt19937 generator;
      engine_mt_seed(&generator, seed);
      std::vector<float> all;
      for (size_t n : calls) {
        std::vector<float> values(n);
        CHECK(engine_mt_randn(&generator, out(values)) == ENGINE_OK);
        append(all, values);
      }
      return all;
    });
    Reference reference(seed);
    std::vector<float> expected;
    for (size_t n : calls) append(expected, reference.randn(n));
    CHECK(same_bytes(expected, got));
  }
}

void state_is_plain_data() {
  engine_mt19937 one, copy;
  engine_mt_seed(&one, 7);
  std::vector<float> skipped(1000), a(77), b(77);
  CHECK(engine_mt_randn(&one, out(skipped)) == ENGINE_OK);
  copy = one;
  CHECK(engine_mt_randn(&one, out(a)) == ENGINE_OK);
  CHECK(engine_mt_randn(&copy, out(b)) == ENGINE_OK);
  CHECK(same_bytes(a, b));
  copy.next = 625;
  CHECK(engine_mt_randn(&copy, out(b)) == ENGINE_BAD_ARGUMENT);
}

/* A new seed forgets the normal that the short path had left over. */
void seeding_clears() {
  engine_mt19937 generator;
  std::vector<float> first(1), again(1);
  engine_mt_seed(&generator, 3);
  CHECK(engine_mt_randn(&generator, out(first)) == ENGINE_OK);
  engine_mt_seed(&generator, 3 + (uint64_t{1} << 32));
  CHECK(engine_mt_randn(&generator, out(again)) == ENGINE_OK);
  CHECK(same_bytes(first, again));
}

void philox_known_answers() {
  struct Golden {
    uint32_t counter[4], key[2], out[4];
  };
  const Golden golden[] = {
      {{0, 0, 0, 0}, {0, 0}, {1713891541, 3781805453, 3159862348, 2600524760}},
      {{~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}, {1083123565, 1103641358, 2718681030, 1834242557}},
      {{608135816, 2242054355, 320440878, 57701188},
       {2752067618, 698298832},
       {3513581065, 2499661035, 1342301216, 605187745}},
  };
  lk_kernels table{};
  lk_noise_baseline(&table);
#if defined(__x86_64__)
  lk_kernels wide{}, widest{};
  lk_noise_avx2(&wide);
  lk_noise_avx512(&widest);
#endif
  for (const Golden &k : golden) {
    auto run = [&](const lk_kernels &kernels) {
      uint32_t words[4] = {};
      uint32_t *rows[4] = {&words[0], &words[1], &words[2], &words[3]};
      kernels.philox_words(rows, 1, k.key[0] | uint64_t{k.key[1]} << 32, k.counter[0] | uint64_t{k.counter[1]} << 32,
                           k.counter[2] | uint64_t{k.counter[3]} << 32);
      CHECK(std::memcmp(words, k.out, sizeof words) == 0);
    };
    run(table);
#if defined(__x86_64__)
    if (engine_isa_supported("avx2")) run(wide);
    if (engine_isa_supported("avx512")) run(widest);
#endif
  }
}

/* Element e of a launch of `grid` threads, from its four words. */
float reference_philox(const std::vector<uint32_t> &words, size_t n, size_t e, size_t grid) {
  size_t lane = e % (4 * grid) / grid, pair = lane / 2;
  float w = static_cast<float>(words[2 * pair * n + e]), v = static_cast<float>(words[(2 * pair + 1) * n + e]);
  float u = w * 0x1p-32f + 0x1p-33f;
  float a = std::fmaf(v, 6.2831855f * 0x1p-32f, 6.2831855f * 0x1p-33f);
  float c, s;
  reference_pair(u, a, &c, &s);
  return lane % 2 == 0 ? s : c;
}

void cuda_stream() {
  for (uint32_t threads : {0u, 256u, 43008u}) {
    for (size_t n : edge_sizes()) {
      if (n == 0) continue;
      uint64_t offset = 8, seed = 0x123456789abcdef0u;
      std::vector<uint32_t> words(4 * n);
      CHECK(engine_philox_words({words.data(), words.size()}, seed, offset, threads) == ENGINE_OK);
      size_t needed = (n + 255) / 256 * 256, grid = threads == 0 || needed < threads ? needed : threads;
      std::vector<float> expected(n);
      for (size_t e = 0; e < n; e++) expected[e] = reference_philox(words, n, e, grid);
      std::vector<float> got = everywhere([&] {
        std::vector<float> values(n);
        uint64_t moving = offset;
        CHECK(engine_philox_randn(out(values), seed, &moving, threads, 1.0f) == ENGINE_OK);
        CHECK(moving == offset + 4 * ((n - 1) / (4 * grid) + 1));
        uint64_t skipping = offset;
        CHECK(engine_philox_skip(n, &skipping, threads) == ENGINE_OK && skipping == moving);
        return values;
      });
      CHECK(same_bytes(expected, got));
    }
  }
}

/* The factor is what scale would do afterwards, whatever it makes of the normals. */
void scaled_cuda_stream() {
  for (float k : {1.0f, 14.6146f, -0.18215f, 0.0f, -0.0f, 1e-39f, 3e38f}) {
    for (size_t n : {1u, 255u, 1023u, 70001u}) {
      uint64_t offset = 4, moving = 4;
      std::vector<float> expected(n);
      CHECK(engine_philox_randn(out(expected), 77, &offset, 1024, 1.0f) == ENGINE_OK);
      CHECK(engine_scale(out(expected), in(expected), k) == ENGINE_OK);
      std::vector<float> got = everywhere([&] {
        std::vector<float> values(n);
        moving = 4;
        CHECK(engine_philox_randn(out(values), 77, &moving, 1024, k) == ENGINE_OK);
        return values;
      });
      CHECK(moving == offset);
      CHECK(same_bytes(expected, got));
    }
  }
}

void bad_arguments() {
  std::vector<float> values(8);
  std::vector<uint32_t> words(8);
  uint64_t offset = 2;
  CHECK(engine_philox_randn(out(values), 0, &offset, 0, 1.0f) == ENGINE_BAD_ARGUMENT);
  CHECK(engine_philox_skip(8, &offset, 0) == ENGINE_BAD_ARGUMENT && offset == 2);
  offset = 0;
  CHECK(engine_philox_randn(out(values), 0, &offset, 100, 1.0f) == ENGINE_BAD_ARGUMENT);
  CHECK(engine_philox_skip(8, &offset, 100) == ENGINE_BAD_ARGUMENT);
  CHECK(engine_philox_skip(SIZE_MAX, &offset, 256) == ENGINE_BAD_ARGUMENT);
  CHECK(engine_philox_randn({nullptr, 0}, 0, &offset, 0, 1.0f) == ENGINE_OK);
  CHECK(engine_philox_skip(0, &offset, 0) == ENGINE_OK);
  CHECK(offset == 0);
  CHECK(engine_philox_words({words.data(), 7}, 0, 0, 0) == ENGINE_BAD_LENGTH);
  CHECK(engine_philox_words({words.data(), 8}, 0, 1, 0) == ENGINE_BAD_ARGUMENT);
  CHECK(engine_philox_words({words.data(), 8}, 0, 0, 1) == ENGINE_BAD_ARGUMENT);
}

}  // namespace

int main() {
  cpu_stream();
  state_is_plain_data();
  seeding_clears();
  philox_known_answers();
  cuda_stream();
  scaled_cuda_stream();
  bad_arguments();
  return report();
}
