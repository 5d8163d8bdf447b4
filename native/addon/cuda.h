// Memory of CUDA devices as JavaScript holds it, and the arguments of operations on it.
#pragma once
#include <memory>
#include <string>
#include <utility>

#include "engine_cuda.h"
#include "operations.h"

namespace latentkit {

/* An opened device, one for each process; its blocks, handles and jobs keep it open. */
struct CudaDevice {
  const engine_cuda_table *table;
  engine_cuda *device;
  ~CudaDevice() { table->close(device); }
};

/* Memory of a device, given back with its last owner. */
struct CudaBlock {
  CudaBlock(std::shared_ptr<CudaDevice> of, void *memory, size_t size)
      : device(std::move(of)), data(memory), bytes(size) {}
  CudaBlock(const CudaBlock &) = delete;
  ~CudaBlock() { device->table->give(device->device, data); }

  const std::shared_ptr<CudaDevice> device;
  void *const data;
  const size_t bytes;
};

/* The block of a handle of memory, nullptr if it was released; throws a TypeError for anything else. */
std::shared_ptr<CudaBlock> &BlockOf(const Args &a, Napi::Value value, const char *name);

/* Args of operations on device memory: spans are read from handles, which must be of one device. */
class CudaArgs : public Args {
 public:
  using Args::Args;

  engine_f32 out(size_t i, const char *name) const;
  engine_cf32 in(Napi::Value value, const char *name) const;
  engine_cf32 in(size_t i, const char *name) const { return in(at(i), name); }
  engine_cf32 in(size_t i, const char *name, size_t length) const;
  engine_u8 bytes_out(size_t i, const char *name) const;
  engine_cu8 bytes_in(size_t i, const char *name) const;
  engine_u32 words_out(size_t i, const char *name) const;
  /* A block that was not released, of the same device as those before. */
  CudaBlock &block(Napi::Value value, const char *name) const;

  template <class Core, class Cuda, class... Values>
  engine_status run(Core, Cuda function, Values... values) const {
    return (device_->table->*function)(device_->device, values...);
  }

 private:
  mutable CudaDevice *device_ = nullptr;
};

}  // namespace latentkit
