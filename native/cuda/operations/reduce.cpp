// Sums over a tree, PyTorch's noise, and injectNoise, which may take both.
#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "device.h"
#include "masks.h"
#include "shared/checks.h"
#include "shared/tree.h"

// Noise that has not been read is drawn while it is mixed: one launch and one pass fewer.
namespace latentkit::cuda {
namespace {

lk_draw draw_of(uint64_t seed, uint64_t offset, const PhiloxLaunch &like, float k) {
  return {seed, offset / 4, lk_divisor(like.threads), like.rows * like.threads, k};
}

/* n values, n above 0. */
engine_status make_normals(engine_cuda &device, float *out, size_t n, const lk_draw &draw) {
  return LK_LAUNCH(device, philox_normals, blocks_for(draw.counters / 4), out, draw, n);
}

engine_status philox_randn(engine_cuda *device, engine_f32 out, uint64_t seed, uint64_t *offset, uint32_t threads,
                           float k) {
  PhiloxLaunch like;
  const engine_status checked = check_philox(out.len, *offset, threads, &like);
  if (checked != ENGINE_OK) return checked;
  return on(device, [&] {
    if (out.len == 0) return ENGINE_OK;
    const engine_status status = make_normals(*device, out.data, out.len, draw_of(seed, *offset, like, k));
    if (status == ENGINE_OK) *offset += like.moved();
    return status;
  });
}

engine_status philox_words(engine_cuda *device, engine_u32 out, uint64_t seed, uint64_t offset, uint32_t threads) {
  const size_t n = out.len / 4;
  if (out.len % 4 != 0) return ENGINE_BAD_LENGTH;
  PhiloxLaunch like;
  const engine_status checked = check_philox(n, offset, threads, &like);
  if (checked != ENGINE_OK) return checked;
  return on(device, [&] {
    if (n == 0) return ENGINE_OK;
    return LK_LAUNCH(*device, philox_words, blocks_for(n), out.data, n, seed, offset / 4, like.threads);
  });
}

// Follows the CPU's tree: a warp is a leaf, a block eight leaves, and the last block adds the groups.
/* Memory of the kernels that sum n values, n above 0, and the blocks of their launches. */
template <class Result>
struct Sums {
  Block block;
  unsigned blocks = 0;
  double *partial = nullptr;
  uint32_t *tickets = nullptr;

  explicit Sums(engine_cuda &device) : block(device) {}

  Result *results() const { return block.as<Result>(); }

  engine_status take(engine_cuda &device, size_t n, size_t count) {
    const size_t leaves = (n + LK_LEAF - 1) / LK_LEAF;
    const size_t groups = (leaves * LK_TREE_LANES + LK_BLOCK - 1) / LK_BLOCK;
    const engine_status status = block.take(count * sizeof(Result) + groups * sizeof(double));
    blocks = blocks_for(uint64_t{leaves} * LK_TREE_LANES);
    partial = reinterpret_cast<double *>(results() + count);
    tickets = reinterpret_cast<uint32_t *>(device.tickets);
    return status;
  }
};

/* Deviations of items that follow each other. */
struct Spread {
  Sums<lk_spread> sums;
  explicit Spread(engine_cuda &device) : sums(device) {}

  lk_spread *result() const { return sums.results(); }

  /* Queues the two passes over n values of each item, n above 0. */
  engine_status compute(engine_cuda &device, lk_values values, size_t n, size_t items = 1) {
    engine_status status = sums.take(device, n, items);
    for (size_t item = 0; item < items && status == ENGINE_OK; item++, values.x += n) {
      lk_spread *result = sums.results() + item;
      status = LK_LAUNCH(device, sums, sums.blocks, values, n, sums.partial, sums.tickets, result);
      if (status != ENGINE_OK) return status;
      status = LK_LAUNCH(device, squares, sums.blocks, values, n, sums.partial, sums.tickets, result);
    }
    return status;
  }

  /* Waits for the two passes, and not for what `then` queues. */
  engine_status read(engine_cuda &device, float *deviation, const std::function<void()> &then = {}) {
    return device.status(device.staging.download(deviation, address(&result()->deviation), sizeof *deviation, then));
  }
};

engine_status std_items(engine_cuda *device, engine_f32 out, engine_cf32 x) {
  const engine_status checked = check_items(out.len, x.len);
  if (checked != ENGINE_OK) return checked;
  return on(device, [&] {
    if (x.len / std::max<size_t>(out.len, 1) < 2) {
      std::fill_n(out.data, out.len, NAN);
      return ENGINE_OK;
    }
    Spread spread(*device);
    engine_status status = spread.compute(*device, {x.data, nullptr, 0, 0.0f}, x.len / out.len, out.len);
    if (status != ENGINE_OK) return status;
    std::vector<lk_spread> spreads(out.len);
    const size_t bytes = out.len * sizeof(lk_spread);
    status = device->status(device->staging.download(spreads.data(), address(spread.result()), bytes));
    for (size_t item = 0; item < out.len; item++) out.data[item] = spreads[item].deviation;
    return status;
  });
}

engine_status std_of(engine_cuda *device, engine_cf32 x, float *out) { return std_items(device, {out, 1}, x); }

engine_status scaled_error(engine_cuda *device, engine_cf32 low, engine_cf32 high, engine_cf32 previous, double atol,
                           double rtol, double *out) {
  const size_t n = low.len;
  if (high.len != n || previous.len != n) return ENGINE_BAD_LENGTH;
  return on(device, [&] {
    *out = NAN;
    if (n == 0) return ENGINE_OK;
    Sums<double> sums(*device);
    engine_status status = sums.take(*device, n, 1);
    if (status != ENGINE_OK) return status;
    const lk_errors errors = {low.data, high.data, previous.data, atol, rtol};
    status = LK_LAUNCH(*device, scaled_errors, sums.blocks, errors, n, sums.partial, sums.tickets, sums.results());
    if (status != ENGINE_OK) return status;
    return device->status(device->staging.download(out, address(sums.results()), sizeof *out));
  });
}

/* True if everything can be read and written four elements at a time. */
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
      // the kernel that writes is queued before the deviation is read, and writes nothing if it is 0
      if (const engine_status read = spread.read(*device, &deviation, std::ref(write)); read != ENGINE_OK) return read;
    } else {
      write();
    }
    return status == ENGINE_OK && deviation == 0.0f ? ENGINE_ZERO_DEVIATION : status;
  });
}

}  // namespace

void fill_reduce(engine_cuda_table *table) {
  table->philox_randn = philox_randn;
  table->philox_words = philox_words;
  table->std = std_of;
  table->std_items = std_items;
  table->scaled_error = scaled_error;
  table->inject_noise = inject_noise;
}

}  // namespace latentkit::cuda
