// One opened device, the wrapper of every function of the table, and launches of kernels.
#pragma once

#include <algorithm>
#include <atomic>
#include <new>
#include <string>
#include <tuple>

#include "driver.h"
#include "engine_cuda.h"
#include "kernels/kernels.h"

namespace latentkit::cuda {

#define LK_ID(name) name,
enum class Kernel { LK_KERNELS(LK_ID, LK_ID) count };
#undef LK_ID

constexpr size_t kKernels = static_cast<size_t>(Kernel::count);

}  // namespace latentkit::cuda

struct engine_cuda {
  latentkit::cuda::Driver driver;
  int device = 0;
  bool retained = false;
  latentkit::cuda::Context context = nullptr;
  latentkit::cuda::Module module = nullptr;
  latentkit::cuda::Stream stream = nullptr;
  latentkit::cuda::Function kernels[latentkit::cuda::kKernels] = {};
  latentkit::cuda::Address tickets = 0; /* a word that is 0 between launches, see kernels/reduce.h */
  std::atomic<bool> lost{false};
  latentkit::cuda::Pool pool{driver, stream};
  latentkit::cuda::Staging staging{driver, stream};

  /* The driver's result as a status. Anything but success and a lack of memory ends the device: its context stays
   * broken, or the backend itself has a fault and its results are worthless. */
  engine_status status(int error) {
    if (error == 0) return ENGINE_OK;
    if (error == latentkit::cuda::kOutOfMemory) return ENGINE_NO_MEMORY;
    lost = true;
    return ENGINE_DEVICE_LOST;
  }
};

namespace latentkit::cuda {

/* Opens device `ordinal`; on failure *device is NULL and *why a sentence. */
engine_status open(const char *path, int ordinal, engine_cuda **device, std::string *why);
void close(engine_cuda *device);

/* The device's context, current on this thread while this lives. */
class Current {
 public:
  explicit Current(engine_cuda &device) : device_(device), error_(device.driver.context_push(device.context)) {}
  ~Current() {
    Context before;
    if (error_ == 0) device_.driver.context_pop(&before);
  }
  Current(const Current &) = delete;
  Current &operator=(const Current &) = delete;

  int error() const { return error_; }

 private:
  engine_cuda &device_;
  int error_;
};

/* Runs body with the device's context current; no exception crosses the table. */
template <class Body>
engine_status on(engine_cuda *device, Body &&body) noexcept {
  if (device->lost) return ENGINE_DEVICE_LOST;
  try {
    Current current(*device);
    if (current.error() != 0) return device->status(current.error());
    return body();
  } catch (const std::bad_alloc &) {
    return ENGINE_NO_MEMORY;
  } catch (...) {
    device->lost = true;
    return ENGINE_DEVICE_LOST;
  }
}

inline Address address(const void *memory) { return reinterpret_cast<Address>(memory); }

/* A block of the pool for the work of one call. */
class Block {
 public:
  explicit Block(engine_cuda &device) : device_(device) {}
  ~Block() {
    if (memory_ != 0) device_.pool.give(memory_);
  }
  Block(const Block &) = delete;
  Block &operator=(const Block &) = delete;

  engine_status take(size_t bytes) { return device_.status(device_.pool.take(bytes, &memory_)); }
  template <class T>
  T *as() const {
    return reinterpret_cast<T *>(memory_);
  }

 private:
  engine_cuda &device_;
  Address memory_ = 0;
};

/* ---- launches: arguments are converted to exactly the types that the kernel declares ---- */
/* Blocks for `threads` that each take one piece of work; with fewer, kernels continue in strides. */
inline unsigned blocks_for(uint64_t threads) {
  constexpr uint64_t kMost = 1 << 20;
  return static_cast<unsigned>(std::clamp<uint64_t>((threads + LK_BLOCK - 1) / LK_BLOCK, 1, kMost));
}

/* Threads that take four elements each. */
inline uint64_t quads(size_t n) { return n / 4 + (n % 4 != 0); }

template <class... Parameters, class... Arguments>
engine_status launch(engine_cuda &device, Kernel kernel, void (*)(Parameters...), unsigned blocks,
                     Arguments... arguments) {
  static_assert(sizeof...(Parameters) == sizeof...(Arguments));
  std::tuple<Parameters...> values(static_cast<Parameters>(arguments)...);
  return std::apply(
      [&](auto &...value) {
        void *addresses[] = {&value...};
        return device.status(device.driver.launch(device.kernels[static_cast<size_t>(kernel)], blocks, 1, 1, LK_BLOCK,
                                                  1, 1, 0, device.stream, addresses, nullptr));
      },
      values);
}

/* LK_LAUNCH(device, scale, blocks, arguments…) */
#define LK_LAUNCH(device, name, ...) \
  ::latentkit::cuda::launch(device, ::latentkit::cuda::Kernel::name, decltype (&lk_##name)(nullptr), __VA_ARGS__)

/* Each fills its part of the table; engine_cuda.h documents the functions. */
void fill_memory(engine_cuda_table *table);
void fill_elementwise(engine_cuda_table *table);
void fill_planes(engine_cuda_table *table);
void fill_reduce(engine_cuda_table *table);

}  // namespace latentkit::cuda
