// The functions of the CUDA driver that the backend calls, found by name at run time, the compiled kernels that it
// loads, and device memory through it: cached blocks and copies. No header of CUDA is needed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

namespace latentkit::cuda {

using Context = struct ContextHandle *;
using Module = struct ModuleHandle *;
using Function = struct FunctionHandle *;
using Stream = struct StreamHandle *;
using Event = struct EventHandle *;
using Address = unsigned long long;

constexpr int kOutOfMemory = 2;
constexpr int kNoDevice = 100;

/* Name here, symbol there (plain names are older ABIs), parameters. All return 0 or an error's number. */
#define LK_DRIVER(X)                                                                                           \
  X(init, "cuInit", (unsigned flags))                                                                          \
  X(version, "cuDriverGetVersion", (int *version))                                                             \
  X(device_count, "cuDeviceGetCount", (int *count))                                                            \
  X(device_get, "cuDeviceGet", (int *device, int ordinal))                                                     \
  X(device_attribute, "cuDeviceGetAttribute", (int *value, int attribute, int device))                         \
  X(error_name, "cuGetErrorName", (int error, const char **name))                                              \
  X(context_retain, "cuDevicePrimaryCtxRetain", (Context * context, int device))                               \
  X(context_release, "cuDevicePrimaryCtxRelease_v2", (int device))                                             \
  X(context_push, "cuCtxPushCurrent_v2", (Context context))                                                    \
  X(context_pop, "cuCtxPopCurrent_v2", (Context * context))                                                    \
  X(module_load, "cuModuleLoadData", (Module * module, const void *image))                                     \
  X(module_unload, "cuModuleUnload", (Module module))                                                          \
  X(module_function, "cuModuleGetFunction", (Function * function, Module module, const char *name))            \
  X(stream_create, "cuStreamCreate", (Stream * stream, unsigned flags))                                        \
  X(stream_wait, "cuStreamSynchronize", (Stream stream))                                                       \
  X(stream_destroy, "cuStreamDestroy_v2", (Stream stream))                                                     \
  X(event_create, "cuEventCreate", (Event * event, unsigned flags))                                            \
  X(event_record, "cuEventRecord", (Event event, Stream stream))                                               \
  X(event_wait, "cuEventSynchronize", (Event event))                                                           \
  X(event_destroy, "cuEventDestroy_v2", (Event event))                                                         \
  X(memory_alloc, "cuMemAlloc_v2", (Address * memory, size_t bytes))                                           \
  X(memory_free, "cuMemFree_v2", (Address memory))                                                             \
  X(memory_info, "cuMemGetInfo_v2", (size_t * free, size_t * total))                                           \
  X(host_alloc, "cuMemHostAlloc", (void **memory, size_t bytes, unsigned flags))                               \
  X(host_free, "cuMemFreeHost", (void *memory))                                                                \
  X(copy_in, "cuMemcpyHtoDAsync_v2", (Address to, const void *from, size_t bytes, Stream stream))              \
  X(copy_out, "cuMemcpyDtoHAsync_v2", (void *to, Address from, size_t bytes, Stream stream))                   \
  X(copy, "cuMemcpyDtoDAsync_v2", (Address to, Address from, size_t bytes, Stream stream))                     \
  X(set_words, "cuMemsetD32Async", (Address to, unsigned word, size_t count, Stream stream))                   \
  X(launch, "cuLaunchKernel",                                                                                  \
    (Function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y, \
     unsigned block_z, unsigned shared_bytes, Stream stream, void **arguments, void **extra))

struct Driver {
#define LK_MEMBER(name, symbol, parameters) int(*name) parameters = nullptr;
  LK_DRIVER(LK_MEMBER)
#undef LK_MEMBER

  /* Opens the library and finds every function; why names what is missing. The library stays open for good: a driver's
   * own threads would outlive it. */
  bool load(const char *path, std::string *why);

  /* "CUDA_ERROR_OUT_OF_MEMORY (2)" */
  std::string name_of(int error) const;
};

/* The argument of cuModuleLoadData. */
const void *image();
/* "75,80,86,89,90,100,120"; "" if there is no image. */
const char *architectures();
/* "13.0": the compiler of the image. */
const char *compiler();

/* Free device memory, cached by size for the next caller: the driver's own allocation waits for the GPU. All work is on
 * one stream, so a block that was given back may be lent again while queued work still uses it. The device's context
 * must be current. */
class Pool {
 public:
  Pool(const Driver &driver, const Stream &stream) : driver_(driver), stream_(stream) {}

  /* 0 or the driver's error. Without memory: waits, frees the cached blocks, and tries once more. */
  int take(size_t bytes, Address *memory);
  /* A block that take lent; anything else is left alone. */
  void give(Address memory);
  /* Waits, and frees the cached blocks. */
  int trim();
  /* Frees everything, lent blocks too. */
  void clear();

  void sizes(uint64_t *lent, uint64_t *cached);

 private:
  const Driver &driver_;
  const Stream &stream_;
  std::mutex mutex_;
  std::unordered_map<Address, size_t> lent_;
  std::map<size_t, std::vector<Address>> cached_;
  uint64_t lent_bytes_ = 0, cached_bytes_ = 0;

  int trim_locked();
};

/* At least 512 bytes, then four sizes to each power of two: a block fits its next user more often. 0: too large. */
size_t rounded_size(size_t bytes);

/* Copies between CPU memory of any kind and the device, through pinned memory: the driver's own way for pageable memory
 * waits for the stream first, and is used only if there is no pinned memory. The device's context must be current.
 * Functions return 0 or the driver's error. */
class Staging {
 public:
  Staging(const Driver &driver, const Stream &stream) : driver_(driver), stream_(stream) {}

  /* Returns when `from` is read; the copy is queued on the stream. */
  int upload(Address to, const void *from, size_t bytes);
  /* Waits for the stream's work so far, and for the copy; not for what `then` queues behind it. */
  int download(void *to, Address from, size_t bytes, const std::function<void()> &then = {});
  void clear();

 private:
  static constexpr size_t kPieces = 2;
  static constexpr size_t kBytes = size_t{4} << 20;

  struct Piece {
    void *memory = nullptr;
    Event done = nullptr;
  };

  const Driver &driver_;
  const Stream &stream_;
  std::mutex mutex_;
  Piece pieces_[kPieces];
  size_t next_ = 0;

  int prepare();
  bool has_memory() const { return pieces_[kPieces - 1].memory != nullptr; }
};

}  // namespace latentkit::cuda
