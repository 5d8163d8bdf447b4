// The functions of the CUDA driver that the backend calls, found by name at run time. No header of CUDA is needed.
#pragma once

#include <cstddef>
#include <string>

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

}  // namespace latentkit::cuda
