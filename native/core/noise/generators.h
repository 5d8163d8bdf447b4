// Streams of PyTorch's CPU generator that are drawn in pieces.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine.h"
#include "kernels/table.h"

namespace latentkit {

constexpr size_t kSeededAtOnce = LK_SEEDED_AT_ONCE;

/* engine_mt_seed of `count` streams, kSeededAtOnce at most; there are kSeededAtOnce generators and seeds. */
void mt_seed_together(engine_mt19937 *generators, const uint32_t *seeds, size_t count);

/* Passes over n words, one for each normal of the long path. */
void mt_skip(engine_mt19937 &generator, size_t n);

}  // namespace latentkit
