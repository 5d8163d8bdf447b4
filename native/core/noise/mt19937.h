// Streams of PyTorch's CPU generator that are drawn in pieces.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine.h"

namespace latentkit {

/* Streams that are seeded at once: one seeding waits for its own last word at every word. */
constexpr size_t kSeededAtOnce = 8;

/* engine_mt_seed of kSeededAtOnce streams. */
void mt_seed_together(engine_mt19937 *generators, const uint32_t *seeds);

/* Passes over n words, one for each normal of the long path. */
void mt_skip(engine_mt19937 &generator, size_t n);

}  // namespace latentkit
