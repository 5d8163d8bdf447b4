// The standard deviation, and injectNoise that may divide by it.
#include <cmath>
#include <functional>

#include "draw.h"
#include "masks.h"
#include "operations.h"
#include "shared/tree.h"

// decision 80
namespace latentkit::cuda {
namespace {

/* Memory of the summing kernels, and their result. */
struct Spread {
  Block block;
  explicit Spread(engine_cuda &device) : block(device) {}

  lk_spread *result() const { return block.as<lk_spread>(); }

  /* Queues the two passes over n values, n above 0. */
  engine_status compute(engine_cuda &device, const lk_values &values, size_t n) {
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

engine_status std_of(engine_cuda *device, engine_cf32 x, float *out) {
  return on(device, [&] {
    if (x.len < 2) {
      *out = NAN;
      return ENGINE_OK;
    }
    Spread spread(*device);
    const engine_status status = spread.compute(*device, {x.data, nullptr, 0, 0.0f}, x.len);
    return status == ENGINE_OK ? spread.read(*device, out) : status;
  });
}

/* True where everything can be read and written four elements at a time. */
bool in_fours(const float *out, const lk_injection &how, size_t n) {
  const auto whole = [](const float *p) { return address(p) % (4 * sizeof(float)) == 0; };
  const bool masked = how.mask.data != nullptr;
  return n % 4 == 0 && whole(out) && whole(how.values.x) && whole(how.values.noise) &&
         (!masked || (how.mask.plane.by % 4 == 0 && (how.mask.resized || whole(how.mask.data))));
}

engine_status inject_noise(engine_cuda *device, engine_f32 out, engine_cf32 base, engine_cf32 noise,
                           const engine_inject_options *options, const engine_cuda_draw *drawn) {
  const size_t n = out.len;
  engine_inject_options settings = *options;
  PhiloxLaunch like = {};
  if (drawn != nullptr) {
    settings.random = {nullptr, n};
    const engine_status checked = check_philox(n, drawn->offset, drawn->threads, &like);
    if (checked != ENGINE_OK) return checked;
  }
  const engine_status checked = check_inject(n, base.len, noise.len, settings);
  if (checked != ENGINE_OK) return checked;
  return on(device, [&] {
    if (n == 0) return ENGINE_OK;
    lk_injection how = {};
    how.values = {base.data, noise.data, settings.average != 0, static_cast<float>(settings.strength)};
    const engine_shape4 &shape = settings.shape;
    if (settings.mask.len > 0) {
      how.mask =
          mask_of(settings.mask.data, settings.mask_n, shape.c, settings.mask_h, settings.mask_w, shape.h, shape.w);
    }
    lk_draw draw = {};
    bool draws = false;
    Block normals(*device), resized(*device);
    if (settings.mix > 0.0) {
      const MixFactors mix(settings.mix);
      how.mixed = 1, how.random = settings.random.data;
      how.keep = mix.keep, how.add = mix.add, how.length = mix.length;
      if (drawn != nullptr) {
        draw = draw_of(drawn->seed, drawn->offset, like, drawn->k);
        draws = in_fours(out.data, how, n);
        if (!draws) {
          if (const engine_status status = normals.take(n * sizeof(float)); status != ENGINE_OK) return status;
          const engine_status status = make_normals(*device, normals.as<float>(), n, draw);
          if (status != ENGINE_OK) return status;
          how.random = normals.as<float>();
        }
      }
    }
    if (how.mask.data != nullptr) {
      const engine_status status = draws ? resize_now(*device, resized, &how.mask)
                                         : resize_ahead(*device, resized, shape.n * shape.c, &how.mask);
      if (status != ENGINE_OK) return status;
    }
    Spread spread(*device);
    if (settings.normalize) {
      if (const engine_status status = spread.compute(*device, how.values, n); status != ENGINE_OK) return status;
      how.spread = spread.result();
    }
    engine_status status = ENGINE_OK;
    const auto write = [&] {
      status = draws ? LK_LAUNCH(*device, inject_drawn, blocks_for(draw.counters / 4), out.data, how, draw, n)
                     : LK_LAUNCH(*device, inject, blocks_for(quads(n)), out.data, how, n);
    };
    float deviation = 1.0f;
    if (settings.normalize) {
      // the kernel that writes is queued before the deviation is read, and writes nothing where it is 0
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
