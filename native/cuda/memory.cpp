// Blocks of device memory, and copies between them and CPU memory.
#include <algorithm>
#include <bit>
#include <cstring>

#include "device.h"

// One stream per device: a block may be lent again while queued work still uses it, without events.
namespace latentkit::cuda {

/* ---- the pool ---- */
size_t rounded_size(size_t bytes) {
  constexpr size_t kLeast = 512;
  if (bytes <= kLeast) return kLeast;
  const size_t step = std::bit_floor(bytes - 1) / 4;
  return bytes > SIZE_MAX - step ? 0 : (bytes + step - 1) / step * step;
}

int Pool::take(size_t bytes, Address *memory) {
  const size_t size = rounded_size(bytes);
  if (size == 0) return kOutOfMemory;
  std::lock_guard lock(mutex_);
  if (auto same_size = cached_.find(size); same_size != cached_.end() && !same_size->second.empty()) {
    *memory = same_size->second.back();
    lent_.emplace(*memory, size);
    same_size->second.pop_back();
    cached_bytes_ -= size;
  } else {
    int error = driver_.memory_alloc(memory, size);
    if (error == kOutOfMemory && cached_bytes_ > 0) {
      if (error = trim_locked(); error != 0) return error;
      error = driver_.memory_alloc(memory, size);
    }
    if (error != 0) return error;
    try {
      lent_.emplace(*memory, size);
    } catch (...) {
      driver_.memory_free(*memory);
      throw;
    }
  }
  lent_bytes_ += size;
  return 0;
}

void Pool::give(Address memory) {
  std::lock_guard lock(mutex_);
  const auto block = lent_.find(memory);
  if (block == lent_.end()) return;
  const size_t size = block->second;
  lent_.erase(block);
  lent_bytes_ -= size;
  try {
    cached_[size].push_back(memory);
    cached_bytes_ += size;
  } catch (...) {
    driver_.memory_free(memory);  // waits for the work that uses it
  }
}

int Pool::trim() {
  std::lock_guard lock(mutex_);
  return trim_locked();
}

int Pool::trim_locked() {
  if (int error = driver_.stream_wait(stream_); error != 0) return error;
  int first = 0;
  for (const auto &[size, blocks] : cached_) {
    for (Address block : blocks) {
      if (int error = driver_.memory_free(block); error != 0 && first == 0) first = error;
    }
  }
  cached_.clear();
  cached_bytes_ = 0;
  return first;
}

void Pool::clear() {
  std::lock_guard lock(mutex_);
  for (const auto &[memory, size] : lent_) driver_.memory_free(memory);
  for (const auto &[size, blocks] : cached_) {
    for (Address block : blocks) driver_.memory_free(block);
  }
  lent_.clear();
  cached_.clear();
  lent_bytes_ = cached_bytes_ = 0;
}

void Pool::sizes(uint64_t *lent, uint64_t *cached) {
  std::lock_guard lock(mutex_);
  *lent = lent_bytes_;
  *cached = cached_bytes_;
}

// Copies go through pinned buffers: from pageable memory the driver would wait for the stream first.
/* ---- staging ---- */
namespace {

constexpr unsigned kWithoutTiming = 2;

}  // namespace

int Staging::prepare() {
  for (Piece &piece : pieces_) {
    if (piece.memory != nullptr) continue;
    if (int error = driver_.host_alloc(&piece.memory, kBytes, 0); error != 0) return error;
  }
  for (Piece &piece : pieces_) {
    if (piece.done == nullptr) {
      if (int error = driver_.event_create(&piece.done, kWithoutTiming); error != 0) return error;
      // nothing has used it yet
      if (int error = driver_.event_record(piece.done, stream_); error != 0) return error;
    }
  }
  return 0;
}

int Staging::upload(Address to, const void *from, size_t bytes) {
  if (bytes == 0) return 0;
  std::lock_guard lock(mutex_);
  const int unready = prepare();
  if (unready == kOutOfMemory && !has_memory()) return driver_.copy_in(to, from, bytes, stream_);
  if (unready != 0) return unready;
  const auto *next = static_cast<const char *>(from);
  while (bytes > 0) {
    Piece &piece = pieces_[next_++ % kPieces];
    const size_t count = std::min(bytes, kBytes);
    if (int error = driver_.event_wait(piece.done); error != 0) return error;
    std::memcpy(piece.memory, next, count);
    if (int error = driver_.copy_in(to, piece.memory, count, stream_); error != 0) return error;
    if (int error = driver_.event_record(piece.done, stream_); error != 0) return error;
    to += count;
    next += count;
    bytes -= count;
  }
  return 0;
}

int Staging::download(void *to, Address from, size_t bytes, const std::function<void()> &then) {
  if (bytes == 0) return 0;
  std::lock_guard lock(mutex_);
  const int unready = prepare();
  if (unready == kOutOfMemory && !has_memory()) {
    if (int error = driver_.copy_out(to, from, bytes, stream_); error != 0) return error;
    if (then) then();
    return driver_.stream_wait(stream_);
  }
  if (unready != 0) return unready;
  auto *next = static_cast<char *>(to);
  // one piece is on its way while the one before it is copied out
  Piece *arriving = nullptr;
  size_t arriving_bytes = 0;
  while (bytes > 0 || arriving != nullptr) {
    Piece *piece = nullptr;
    const size_t count = std::min(bytes, kBytes);
    if (count > 0) {
      piece = &pieces_[next_++ % kPieces];
      if (int error = driver_.event_wait(piece->done); error != 0) return error;
      if (int error = driver_.copy_out(piece->memory, from, count, stream_); error != 0) return error;
      if (int error = driver_.event_record(piece->done, stream_); error != 0) return error;
      from += count;
      bytes -= count;
      if (then && bytes == 0) then();
    }
    if (arriving != nullptr) {
      if (int error = driver_.event_wait(arriving->done); error != 0) return error;
      std::memcpy(next, arriving->memory, arriving_bytes);
      next += arriving_bytes;
    }
    arriving = piece;
    arriving_bytes = count;
  }
  return 0;
}

void Staging::clear() {
  std::lock_guard lock(mutex_);
  for (Piece &piece : pieces_) {
    if (piece.done != nullptr) driver_.event_destroy(piece.done);
    if (piece.memory != nullptr) driver_.host_free(piece.memory);
    piece = {};
  }
}

/* ---- the table's functions ---- */
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
  // the pool asks the driver only if its lists cannot grow; a lost device keeps its lists too
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
