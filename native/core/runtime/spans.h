// Small rules about spans that several operations share.
#pragma once

#include <cstddef>
#include <new>

#include "engine.h"

namespace latentkit {

/* True where outputs are to be written around the caches: beyond 8 MiB in all, counted in floats, they would push the
 * inputs out. */
inline int streams(size_t floats) { return floats > (size_t{2} << 20); }

/* Runs body and turns a failed allocation into a status: no exception crosses engine.h. */
template <class Body>
engine_status guarded(Body &&body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc &) {
    return ENGINE_NO_MEMORY;
  } catch (...) {
    return ENGINE_BAD_LENGTH;
  }
}

}  // namespace latentkit
