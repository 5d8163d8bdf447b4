// The one exported symbol: the table of the backend's functions.
#include <cstdio>

#include "device.h"
#include "image.h"
#include "operations/operations.h"

namespace latentkit::cuda {
namespace {

void report(char *to, size_t room, const char *text) {
  if (to != nullptr && room > 0) std::snprintf(to, room, "%s", text);
}

engine_status open_device(const char *driver, int ordinal, engine_cuda **device, char *why, size_t why_len) {
  *device = nullptr;
  report(why, why_len, "");
  try {
    std::string reason;
    const engine_status status = open(driver, ordinal, device, &reason);
    report(why, why_len, reason.c_str());
    return status;
  } catch (...) {
    report(why, why_len, "There is no memory to open the CUDA device.");
    return ENGINE_NO_MEMORY;
  }
}

engine_cuda_table make_table() {
  engine_cuda_table table{};
  table.abi = ENGINE_CUDA_ABI;
  table.bytes = sizeof table;
  table.architectures = architectures();
  table.open = open_device;
  table.close = close;
  fill_memory(&table);
  fill_elementwise(&table);
  fill_noise(&table);
  fill_planes(&table);
  fill_reduce(&table);
  fill_images(&table);
  return table;
}

}  // namespace
}  // namespace latentkit::cuda

extern "C" __attribute__((visibility("default"))) const engine_cuda_table *latentkit_cuda(void) {
  static const engine_cuda_table table = latentkit::cuda::make_table();
  return &table;
}
