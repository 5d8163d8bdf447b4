// The driver's functions. Work on a stream is queued and done at the next wait, as late as a GPU could.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "state.h"

#define FAKE(name, ...) extern "C" __attribute__((visibility("default"))) int name(__VA_ARGS__)
#define FAKE_BEGIN                         \
  fake::State &state = fake::state();      \
  const std::lock_guard lock(state.mutex); \
  if (const int error = state.call(__func__)) return fail(error)
/* The device of the current context; an error that stays is returned by everything. */
#define FAKE_DEVICE                                   \
  FAKE_BEGIN;                                         \
  if (contexts.empty()) return fake::kInvalidContext; \
  fake::Device &device = *contexts.back();            \
  if (device.broken != 0) return device.broken

using fake::Device;

namespace {

thread_local std::vector<Device *> contexts;

struct Event {
  uint64_t after = 0;
};

/* Errors of the 700s stay with the context. */
int fail(int error) {
  if (error >= 700 && error < 800 && !contexts.empty()) contexts.back()->broken = error;
  return error;
}

}  // namespace

FAKE(cuInit, unsigned) {
  FAKE_BEGIN;
  return state.settings.devices == 0 ? fake::kNoDevice : 0;
}
FAKE(cuDriverGetVersion, int *version) {
  FAKE_BEGIN;
  *version = state.settings.version;
  return 0;
}
FAKE(cuDeviceGetCount, int *count) {
  FAKE_BEGIN;
  *count = state.settings.devices;
  return 0;
}
FAKE(cuDeviceGet, int *device, int ordinal) {
  FAKE_BEGIN;
  if (ordinal < 0 || ordinal >= state.settings.devices) return fake::kInvalidDevice;
  *device = ordinal;
  return 0;
}
FAKE(cuDeviceGetName, char *name, int room, int ordinal) {
  FAKE_BEGIN;
  std::snprintf(name, static_cast<size_t>(room), "%s %d", state.settings.name.c_str(), ordinal);
  return 0;
}
FAKE(cuDeviceTotalMem_v2, size_t *bytes, int) {
  FAKE_BEGIN;
  *bytes = state.settings.memory;
  return 0;
}
FAKE(cuDeviceGetAttribute, int *value, int attribute, int) {
  FAKE_BEGIN;
  constexpr int kMajor = 75, kMinor = 76;
  if (attribute != kMajor && attribute != kMinor) return fake::kInvalidValue;
  *value = attribute == kMajor ? state.settings.capability / 10 : state.settings.capability % 10;
  return 0;
}
FAKE(cuGetErrorName, int error, const char **name) {
  FAKE_BEGIN;
  *name = error == fake::kOutOfMemory ? "CUDA_ERROR_OUT_OF_MEMORY"
          : error == 209              ? "CUDA_ERROR_NO_BINARY_FOR_GPU"
                                      : nullptr;
  return *name == nullptr ? fake::kInvalidValue : 0;
}

FAKE(cuDevicePrimaryCtxRetain, Device **context, int ordinal) {
  FAKE_BEGIN;
  Device &device = state.devices[ordinal];
  device.ordinal = ordinal;
  device.references++;
  *context = &device;
  return 0;
}
FAKE(cuDevicePrimaryCtxRelease_v2, int ordinal) {
  FAKE_BEGIN;
  Device &device = state.devices[ordinal];
  if (device.references == 0) return state.misuse("released a context that is not retained");
  if (--device.references > 0) return 0;
  device.run();
  device.queue.clear();
  fake::drop(device);
  return 0;
}
FAKE(cuCtxPushCurrent_v2, Device *context) {
  FAKE_BEGIN;
  if (context == nullptr || context->references == 0) return fake::kInvalidContext;
  contexts.push_back(context);
  return 0;
}
FAKE(cuCtxPopCurrent_v2, Device **context) {
  FAKE_BEGIN;
  if (contexts.empty()) return fake::kInvalidContext;
  *context = contexts.back();
  contexts.pop_back();
  return 0;
}

FAKE(cuModuleLoadData, void **module, const void *image) {
  FAKE_DEVICE;
  if (image == nullptr) return fake::kInvalidValue;
  *module = &device;
  return 0;
}
FAKE(cuModuleUnload, void *) {
  FAKE_DEVICE;
  return 0;
}
FAKE(cuModuleGetFunction, const fake::Kernel **function, void *, const char *name) {
  FAKE_DEVICE;
  *function = fake::find_kernel(name);
  return *function == nullptr ? fake::kNotFound : 0;
}

FAKE(cuStreamCreate, Device **stream, unsigned) {
  FAKE_DEVICE;
  *stream = &device;
  return 0;
}
FAKE(cuStreamDestroy_v2, Device *) {
  FAKE_DEVICE;
  return device.run();
}
FAKE(cuStreamSynchronize, Device *) {
  FAKE_DEVICE;
  return device.run();
}
FAKE(cuEventCreate, Event **event, unsigned) {
  FAKE_DEVICE;
  *event = new Event;
  return 0;
}
FAKE(cuEventRecord, Event *event, Device *) {
  FAKE_DEVICE;
  event->after = device.queued;
  return 0;
}
FAKE(cuEventSynchronize, Event *event) {
  FAKE_DEVICE;
  return device.run(event->after);
}
FAKE(cuEventDestroy_v2, Event *event) {
  FAKE_BEGIN;
  delete event;
  return 0;
}

FAKE(cuMemAlloc_v2, uint64_t *address, size_t bytes) {
  FAKE_DEVICE;
  return fake::take(device, bytes, address);
}
FAKE(cuMemFree_v2, uint64_t address) {
  FAKE_DEVICE;
  if (const int error = device.run()) return error;
  return fail(fake::give(device, address));
}
FAKE(cuMemGetInfo_v2, size_t *free, size_t *total) {
  FAKE_DEVICE;
  *total = state.settings.memory;
  *free = state.settings.memory - std::min(state.settings.memory, fake::taken(device));
  return 0;
}
FAKE(cuMemHostAlloc, void **memory, size_t bytes, unsigned) {
  FAKE_DEVICE;
  return fake::pin(bytes, memory);
}
FAKE(cuMemFreeHost, void *memory) {
  FAKE_BEGIN;
  if (!contexts.empty()) contexts.back()->run();
  return fail(fake::unpin(memory));
}

FAKE(cuMemcpyHtoDAsync_v2, uint64_t to, const void *from, size_t bytes, Device *) {
  FAKE_DEVICE;
  if (!fake::holds(device, to, bytes)) return fail(state.misuse("a copy to the device does not fit into a block"));
  state.counts["bytes in"] += bytes;
  const auto copy = [=] {
    std::memcpy(reinterpret_cast<void *>(to), from, bytes);
    return 0;
  };
  device.add(copy);
  // pageable memory is read before the call returns
  return fake::pinned(from, bytes) ? 0 : device.run();
}
FAKE(cuMemcpyDtoHAsync_v2, void *to, uint64_t from, size_t bytes, Device *) {
  FAKE_DEVICE;
  if (!fake::holds(device, from, bytes)) return fail(state.misuse("a copy from the device reaches out of a block"));
  state.counts["bytes out"] += bytes;
  device.add([=] {
    std::memcpy(to, reinterpret_cast<const void *>(from), bytes);
    return 0;
  });
  return fake::pinned(to, bytes) ? 0 : device.run();
}
FAKE(cuMemcpyDtoDAsync_v2, uint64_t to, uint64_t from, size_t bytes, Device *) {
  FAKE_DEVICE;
  if (!fake::holds(device, to, bytes) || !fake::holds(device, from, bytes)) {
    return fail(state.misuse("a copy on the device reaches out of a block"));
  }
  device.add([=] {
    std::memmove(reinterpret_cast<void *>(to), reinterpret_cast<const void *>(from), bytes);
    return 0;
  });
  return 0;
}
FAKE(cuMemsetD32Async, uint64_t to, unsigned word, size_t count, Device *) {
  FAKE_DEVICE;
  if (to % 4 != 0 || !fake::holds(device, to, 4 * count)) return fail(state.misuse("a fill reaches out of a block"));
  device.add([=] {
    std::fill_n(reinterpret_cast<unsigned *>(to), count, word);
    return 0;
  });
  return 0;
}

FAKE(cuLaunchKernel, const fake::Kernel *kernel, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
     unsigned block_y, unsigned block_z, unsigned, Device *, void **arguments, void **) {
  fake::State &state = fake::state();
  const std::lock_guard lock(state.mutex);
  // a kernel that fails does so while it runs: the error comes with the next wait
  const int every = state.call("cuLaunchKernel"), one = state.call(fake::name_of(kernel));
  if (contexts.empty()) return fake::kInvalidContext;
  Device &device = *contexts.back();
  if (device.broken != 0) return device.broken;
  if (const int error = every != 0 ? every : one) {
    if (error < 700) return error;
    device.add([=] { return error; });
    return 0;
  }
  if (grid_x == 0 || grid_x > 0x7fffffff || grid_y != 1 || grid_z != 1 || block_y != 1 || block_z != 1 ||
      block_x == 0 || block_x > 1024) {
    return fail(state.misuse("a launch of " + fake::name_of(kernel) + " has a grid that no device takes"));
  }
  std::string why;
  device.add(fake::prepare(kernel, device, grid_x, block_x, arguments, &why));
  return why.empty() ? 0 : fail(state.misuse(why));
}
