// A cache of large blocks of memory: the pages of fresh memory cost more than the work in them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

#include "engine.h"

namespace latentkit {

/* Frees all cached blocks. */
void drop_scratch();

struct GiveScratch {
  void operator()(uint8_t *block) const { engine_scratch_give(block); }
};
using Scratch = std::unique_ptr<uint8_t[], GiveScratch>;

/* Memory that is written before it is read. Throws std::bad_alloc. */
inline Scratch scratch(size_t bytes) {
  auto *block = static_cast<uint8_t *>(engine_scratch_take(bytes));
  if (block == nullptr) throw std::bad_alloc();
  return Scratch(block);
}

}  // namespace latentkit
