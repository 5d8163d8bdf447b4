// One opened device, and the wrapper of every function of the table.
#pragma once

#include <atomic>
#include <new>
#include <string>

#include "driver.h"
#include "engine_cuda.h"
#include "kernels/kernels.h"
#include "pool.h"
#include "staging.h"

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
   * broken, or the backend has a fault of its own and its results are worthless. */
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

}  // namespace latentkit::cuda
