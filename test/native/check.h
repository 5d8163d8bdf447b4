// The whole test framework: checks that count, and every instruction set with several numbers of threads.
#pragma once

#include <atomic>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "engine.h"

inline std::atomic<int> failures{0};

#define CHECK(condition)                                                             \
  do {                                                                               \
    if (!(condition) && failures++ < 20) {                                           \
      std::fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
    }                                                                                \
  } while (0)

inline int report() {
  engine_shutdown();
  if (failures > 0) std::fprintf(stderr, "%d checks failed\n", failures.load());
  return failures > 0;
}

template <class T>
bool same_bytes(const std::vector<T> &a, const std::vector<T> &b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

inline std::vector<std::string> supported_isas() {
  std::vector<std::string> names;
  for (const char *name : {"avx512", "avx2", "baseline"}) {
    if (engine_isa_supported(name)) names.push_back(name);
  }
  return names;
}

/* Computes with every instruction set and 1, 2 and 7 threads, checks that the bytes agree, and gives them back. */
template <class Compute>
auto everywhere(Compute &&compute) {
  decltype(compute()) first;
  bool have = false;
  for (const std::string &isa : supported_isas()) {
    CHECK(engine_set_isa(isa.c_str()) == ENGINE_OK);
    for (int threads : {1, 2, 7}) {
      CHECK(engine_set_threads(threads) == ENGINE_OK);
      auto result = compute();
      if (!have) first = result;
      have = true;
      if (!same_bytes(first, result) && failures++ < 20) {
        std::fprintf(stderr, "other bytes with %s and %d threads\n", isa.c_str(), threads);
      }
    }
  }
  return first;
}

inline const std::vector<size_t> &edge_sizes() {
  static const std::vector<size_t> sizes = {0,  1,  2,  7,  8,   15,  16,  17,   31,    32,
                                            33, 63, 64, 65, 255, 256, 257, 4097, 65537, 200001};
  return sizes;
}

/* Reproducible numbers in [-range, range). */
inline std::vector<float> numbers(size_t n, uint32_t seed, float range = 2.0f) {
  std::vector<float> values(n);
  uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;
  for (float &value : values) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    value = (static_cast<float>(state >> 40) * 0x1p-23f - 1.0f) * range;
  }
  return values;
}

inline engine_f32 out(std::vector<float> &v) { return {v.data(), v.size()}; }
inline engine_cf32 in(const std::vector<float> &v) { return {v.data(), v.size()}; }
