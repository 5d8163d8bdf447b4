// Blocks of device memory, and copies between them and CPU memory.
#include <cstring>

#include "device.h"
#include "operations/operations.h"

namespace latentkit::cuda {
namespace {

engine_status take(engine_cuda *device, size_t bytes, void **memory) {
  *memory = nullptr;
  if (bytes == 0) return device->lost ? ENGINE_DEVICE_LOST : ENGINE_OK;
  return on(device, [&] {
    Address block = 0;
    const engine_status status = device->status(device->pool.take(bytes, &block));
    if (status == ENGINE_OK) *memory = reinterpret_cast<void *>(block);
    return status;
  });
}

void give(engine_cuda *device, void *memory) {
  if (memory == nullptr) return;
  // the pool asks the driver only where its lists cannot grow; a lost device keeps its lists as well
  const Current current(*device);
  device->pool.give(address(memory));
}

engine_status memory(engine_cuda *device, engine_cuda_memory *result) {
  *result = {};
  return on(device, [&] {
    size_t free = 0, total = 0;
    const engine_status status = device->status(device->driver.memory_info(&free, &total));
    if (status != ENGINE_OK) return status;
    result->free = free;
    result->total = total;
    device->pool.sizes(&result->lent, &result->pooled);
    return status;
  });
}

engine_status trim(engine_cuda *device) {
  return on(device, [&] { return device->status(device->pool.trim()); });
}

engine_status upload(engine_cuda *device, void *to, const void *from, size_t bytes) {
  return on(device, [&] { return device->status(device->staging.upload(address(to), from, bytes)); });
}

engine_status download(engine_cuda *device, void *to, const void *from, size_t bytes) {
  return on(device, [&] { return device->status(device->staging.download(to, address(from), bytes)); });
}

engine_status copy(engine_cuda *device, void *to, const void *from, size_t bytes) {
  return on(device, [&] {
    if (bytes == 0) return ENGINE_OK;
    return device->status(device->driver.copy(address(to), address(from), bytes, device->stream));
  });
}

engine_status fill(engine_cuda *device, engine_f32 out, float value) {
  return on(device, [&] {
    if (out.len == 0) return ENGINE_OK;
    unsigned word;
    std::memcpy(&word, &value, sizeof word);
    return device->status(device->driver.set_words(address(out.data), word, out.len, device->stream));
  });
}

engine_status wait(engine_cuda *device) {
  return on(device, [&] { return device->status(device->driver.stream_wait(device->stream)); });
}

}  // namespace

void fill_memory(engine_cuda_table *table) {
  table->take = take;
  table->give = give;
  table->memory = memory;
  table->trim = trim;
  table->upload = upload;
  table->download = download;
  table->copy = copy;
  table->fill = fill;
  table->wait = wait;
}

}  // namespace latentkit::cuda
