// The standard deviation, and injectNoise that may divide by it.
#include <cmath>
#include <functional>

#include "draw.h"
#include "masks.h"
#include "operations.h"
#include "shared/tree.h"

namespace latentkit::cuda {
namespace {

/* Where the summing kernels leave what they find, and the room they need. */
struct Spread {
  Block block;
  explicit Spread(engine_cuda &device) : block(device) {}

  lk_spread *result() const { return block.as<lk_spread>(); }

  /* Queues the two passes over n values, n above 0. */
  engine_status find(engine_cuda &device, const lk_values &values, size_t n) {
    const size_t leaves = (n + LK_LEAF - 1) / LK_LEAF;
    const unsigned blocks = blocks_for(uint64_t{leaves} * LK_TREE_LANES);
    const size_t groups = (leaves * LK_TREE_LANES + LK_BLOCK - 1) / LK_BLOCK;
    if (engine_status status = block.take(sizeof(lk_spread) + groups * sizeof(double)); status != ENGINE_OK) {
      return status;
    }
    auto *partial = reinterpret_cast<double *>(result() + 1);
    auto *tickets = reinterpret_cast<uint32_t *>(device.tickets);
    const engine_status status = LK_LAUNCH(device, sums, blocks, values, n, partial, tickets, result());
    if (status != ENGINE_OK) return status;
    return LK_LAUNCH(device, squares, blocks, values, n, partial, tickets, result());
  }

  /* Waits for the two passes, and not for what `then` queues. */
  engine_status read(engine_cuda &device, float *deviation, const std::function<void()> &then = {}) {
    return device.status(device.staging.download(deviation, address(&result()->deviation), sizeof *deviation, then));
  }
};

engine_status std_of(engine_cuda *device, engine_cf32 x, float *host_out) {
  return on(device, [&] {
    if (x.len < 2) {
      *host_out = NAN;
      return ENGINE_OK;
    }
    Spread spread(*device);
    const engine_status status = spread.find(*device, {x.data, nullptr, 0, 0.0f}, x.len);
    return status == ENGINE_OK ? spread.read(*device, host_out) : status;
  });
}

engine_status inject_noise(engine_cuda *device, engine_f32 out, engine_cf32 base, engine_cf32 noise,
                           const engine_inject_options *options, const engine_cuda_draw *drawn) {
  engine_inject_options checkable = *options;
  PhiloxLaunch like = {};
  if (drawn != nullptr) {
    const engine_status checked = check_philox(out.len, drawn->offset, drawn->threads, &like);
    if (checked != ENGINE_OK) return checked;
    checkable.random.len = out.len;
  }
  const engine_status checked = check_inject(out.len, base.len, noise.len, checkable);
  if (checked != ENGINE_OK) return checked;
  const bool mixed = options->mix > 0.0, draws = mixed && drawn != nullptr;
  return on(device, [&] {
    const size_t n = out.len;
    if (n == 0) return ENGINE_OK;
    lk_injection how = {};
    how.values = {base.data, noise.data, options->average != 0, static_cast<float>(options->strength)};
    Block resized(*device);
    if (options->mask.len > 0) {
      const engine_shape4 &shape = options->shape;
      how.mask =
          mask_of(options->mask.data, options->mask_n, shape.c, options->mask_h, options->mask_w, shape.h, shape.w);
      const engine_status status = draws ? resize_now(*device, resized, &how.mask)
                                         : resize_ahead(*device, resized, shape.n * shape.c, &how.mask);
      if (status != ENGINE_OK) return status;
    }
    if (mixed) {
      const MixFactors mix(options->mix);
      how.mixed = 1;
      how.random = draws ? nullptr : options->random.data;
      how.keep = mix.keep, how.add = mix.add, how.length = mix.length;
    }
    Spread spread(*device);
    if (options->normalize) {
      if (const engine_status status = spread.find(*device, how.values, n); status != ENGINE_OK) return status;
      how.spread = spread.result();
    }
    engine_status status = ENGINE_OK;
    const auto write = [&] {
      if (draws) {
        const lk_draw draw = draw_of(drawn->seed, drawn->offset, like, drawn->k);
        status = LK_LAUNCH(*device, inject_drawn, blocks_for(draw.counters), out.data, how, draw, n);
      } else {
        status = LK_LAUNCH(*device, inject, blocks_for(quads(n)), out.data, how, n);
      }
    };
    float deviation = 1.0f;
    if (options->normalize) {
      // the kernel that writes is queued before this is known, and writes nothing where it is 0
      if (const engine_status read = spread.read(*device, &deviation, std::ref(write)); read != ENGINE_OK) return read;
    } else {
      write();
    }
    return status == ENGINE_OK && deviation == 0.0f ? ENGINE_ZERO_DEVIATION : status;
  });
}

}  // namespace

void fill_reduce(engine_cuda_table *table) {
  table->std = std_of;
  table->inject_noise = inject_noise;
}

}  // namespace latentkit::cuda
