#include "dispatch.h"

#include <atomic>
#include <cstdlib>
#include <cstring>

#include "engine.h"

namespace latentkit {
namespace {

struct Set {
  Isa isa;
  const char *name;
  lk_kernels table;
  bool supported;
};

#define LK_FILL(isa)                                                                                           \
  [] {                                                                                                         \
    lk_kernels table{};                                                                                        \
    lk_noise_##isa(&table), lk_elementwise_##isa(&table), lk_reduce_##isa(&table);                             \
    lk_schedule_##isa(&table), lk_pixels_##isa(&table), lk_resize_##isa(&table);                               \
    lk_unfilter_##isa(&table), lk_filter_##isa(&table), lk_histogram_##isa(&table), lk_brownian_##isa(&table); \
    lk_symbols_##isa(&table), lk_colours_##isa(&table), lk_weigh_##isa(&table);                                \
    return table;                                                                                              \
  }()

// best first
struct Sets {
#if defined(__x86_64__)
  Set sets[3] = {
      {Isa::avx512, "avx512", LK_FILL(avx512),
       __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2")},
      {Isa::avx2, "avx2", LK_FILL(avx2),
       __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2")},
      {Isa::baseline, "baseline", LK_FILL(baseline), true},
  };
#else
  Set sets[1] = {{Isa::baseline, "baseline", LK_FILL(baseline), true}};
#endif
  std::atomic<const Set *> current{nullptr};

  const Set *find(const char *name) const {
    for (const Set &set : sets) {
      if (name != nullptr && set.supported && std::strcmp(set.name, name) == 0) return &set;
    }
    return nullptr;
  }

  Sets() {
    const Set *chosen = find(std::getenv("LATENTKIT_ISA"));
    for (const Set &set : sets) {
      if (chosen == nullptr && set.supported) chosen = &set;
    }
    current.store(chosen, std::memory_order_relaxed);
  }
};

Sets &sets() {
  static Sets instance;
  return instance;
}

const Set &current() { return *sets().current.load(std::memory_order_relaxed); }

}  // namespace

Isa isa() { return current().isa; }

const lk_kernels &kernels() { return current().table; }

}  // namespace latentkit

const char *engine_isa(void) { return latentkit::current().name; }

int engine_isa_supported(const char *name) { return latentkit::sets().find(name) != nullptr; }

engine_status engine_set_isa(const char *name) {
  const latentkit::Set *set = latentkit::sets().find(name);
  if (set == nullptr) return ENGINE_UNSUPPORTED;
  latentkit::sets().current.store(set, std::memory_order_relaxed);
  return ENGINE_OK;
}
