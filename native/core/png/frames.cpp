// The pictures of a PNG as a viewer shows them: frames composited on each other as Pillow does, then turned by EXIF.
#include <algorithm>
#include <cstring>
#include <limits>

#include "png/png.h"
#include "runtime/runtime.h"

namespace latentkit::png {
namespace {

enum Disposal : uint8_t { kLeave = 0, kBackground = 1, kPrevious = 2 };

/* A frame: its picture, and where and how it is painted on the canvas. */
struct Frame {
  Scan picture;
  uint32_t x, y;
  uint8_t disposal;
  bool blends, has_control;
};

Frame without_data(const Scan &scan) {
  Frame frame{scan, 0, 0, kLeave, false, false};
  frame.picture.data_chunks = frame.picture.data_len = 0;
  return frame;
}

engine_status read_control(const Chunk &chunk, const Scan &scan, Frame *frame, const char **reason) {
  if (chunk.len != 26) return refuse(reason, "a frame of the animation has the wrong length");
  frame->picture.width = read32(chunk.data + 4);
  frame->picture.height = read32(chunk.data + 8);
  frame->x = read32(chunk.data + 12);
  frame->y = read32(chunk.data + 16);
  frame->disposal = chunk.data[24];
  frame->blends = chunk.data[25] == 1;
  frame->has_control = true;
  if (frame->picture.width == 0 || frame->picture.height == 0 ||
      uint64_t{frame->x} + frame->picture.width > scan.width ||
      uint64_t{frame->y} + frame->picture.height > scan.height)
    return refuse(reason, "a frame of the animation is empty or extends beyond the picture");
  if (chunk.data[24] > kPrevious || chunk.data[25] > 1)
    return refuse(reason, "a frame of the animation has an unknown operation");
  return ENGINE_OK;
}

engine_status add_data(engine_cu8 file, const Chunk &chunk, const Scan &scan, Frame *frame, const char **reason) {
  const bool is_first_picture = chunk.type == type_of("IDAT");
  const size_t skip = is_first_picture ? 0 : 4;
  Scan &picture = frame->picture;
  if (is_first_picture && (picture.width != scan.width || picture.height != scan.height))
    return refuse(reason, "the first frame of the animation is smaller than the picture");
  if (picture.data_chunks == 0) {
    picture.first_data = static_cast<size_t>(chunk.data - 8 - file.data);
    picture.data_skip = skip;
  }
  // so the first frame is always that of IDAT, and covers the canvas
  const bool is_early = file.data + scan.first_data > chunk.data;
  if (picture.data_skip != skip || is_early || (!is_first_picture && !frame->has_control))
    return refuse(reason, "the animation has data outside any frame");
  picture.data_chunks++;
  picture.data_len += chunk.len - skip;
  return ENGINE_OK;
}

/* Calls each(frame, number) for the first `most` frames; *count is their number. */
template <class Each>
engine_status each_frame(engine_cu8 file, const Scan &scan, uint64_t most, uint64_t *count, const char **reason,
                         Each &&each) {
  Frame frame = without_data(scan);
  Chunks chunks(file);
  Chunk chunk{};
  uint32_t sequence = 0;
  *count = 0;
  while (*count < most && chunks.next(&chunk)) {
    const bool is_control = chunk.type == type_of("fcTL"), is_frame_data = chunk.type == type_of("fdAT");
    if ((is_control || is_frame_data) && (chunk.len < 4 || read32(chunk.data) != sequence++))
      return refuse(reason, "the frames of the animation are out of order");
    engine_status status = ENGINE_OK;
    if ((is_control || chunk.type == type_of("IEND")) && frame.picture.data_chunks > 0) {
      // an animation declares its frames; a picture before them that is not one of them comes first
      if (*count == 0) most = std::min(most, uint64_t{scan.announced_frames} + (frame.has_control ? 0 : 1));
      status = measure(&frame.picture, reason);
      if (status == ENGINE_OK) status = each(frame, (*count)++);
      frame = without_data(scan);
      if (status != ENGINE_OK || *count == most) return status;
    }
    if (is_control && frame.has_control) return refuse(reason, "a frame of the animation has no data");
    if (is_control) status = read_control(chunk, scan, &frame, reason);
    if (is_frame_data || chunk.type == type_of("IDAT")) status = add_data(file, chunk, scan, &frame, reason);
    if (status != ENGINE_OK) return status;
  }
  return *count < most ? refuse(reason, "the animation has fewer frames than it declares") : ENGINE_OK;
}

/* target * (1 - alpha) + source * alpha for every sample, alpha too, rounded. */
template <class Sample>
void blend_row(uint8_t *target, const uint8_t *source, size_t pixels, size_t channels) {
  constexpr uint32_t kMost = std::numeric_limits<Sample>::max();
  const auto load = [](const uint8_t *from) {
    Sample sample;
    std::memcpy(&sample, from, sizeof sample);
    return uint32_t{sample};
  };
  for (size_t i = 0; i < pixels; i++, target += channels * sizeof(Sample), source += channels * sizeof(Sample)) {
    const uint32_t alpha = load(source + (channels - 1) * sizeof(Sample));
    for (size_t at = 0; at < channels * sizeof(Sample); at += sizeof(Sample)) {
      const auto mixed =
          static_cast<Sample>((load(target + at) * (kMost - alpha) + load(source + at) * alpha + kMost / 2) / kMost);
      std::memcpy(target + at, &mixed, sizeof mixed);
    }
  }
}

/* Paints frame after frame; each begins as a copy of the one before. */
class Canvas {
 public:
  explicit Canvas(const Scan &scan)
      : pixel_(scan.result_pixel_bytes()),
        stride_(scan.width * pixel_),
        bytes_(stride_ * scan.height),
        channels_(static_cast<size_t>(scan.channels())),
        // Pillow ignores the transparency of grey here
        has_alpha_(scan.colour == kGreyAlpha || scan.colour == kRgba ||
                   (scan.transparency != nullptr && scan.colour != kGrey)),
        is_deep_(scan.result_depth() == 16) {
    decode_zero(scan, zero_);
  }

  /* before: the frame in front, already painted; NULL for the first. */
  engine_status paint(engine_cu8 file, const Frame &frame, uint8_t *out, const uint8_t *before, const char **reason) {
    if (before == nullptr) {
      const engine_status status = decode(file, frame.picture, out, reason);
      // there is nothing before it
      remember(frame, frame.disposal == kPrevious ? uint8_t{kBackground} : frame.disposal, nullptr);
      return status;
    }
    std::memcpy(out, before, bytes_);
    dispose(out);
    const size_t row = frame.picture.width * pixel_;
    const Scratch own = scratch(row * frame.picture.height);
    const engine_status status = decode(file, frame.picture, own.get(), reason);
    if (status != ENGINE_OK) return status;
    remember(frame, frame.disposal, out);
    for (size_t y = 0; y < frame.picture.height; y++) {
      uint8_t *target = out + (frame.y + y) * stride_ + frame.x * pixel_;
      const uint8_t *source = own.get() + y * row;
      if (!frame.blends || !has_alpha_) std::memcpy(target, source, row);
      else if (is_deep_) blend_row<uint16_t>(target, source, frame.picture.width, channels_);
      else blend_row<uint8_t>(target, source, frame.picture.width, channels_);
    }
    return ENGINE_OK;
  }

 private:
  /* Keeps what the next frame needs to remove this one. */
  void remember(const Frame &frame, uint8_t disposal, const uint8_t *canvas) {
    disposal_ = disposal;
    left_ = frame.x * pixel_, top_ = frame.y;
    row_ = frame.picture.width * pixel_, rows_ = frame.picture.height;
    if (disposal != kPrevious) return;
    below_ = scratch(row_ * rows_);
    for (size_t y = 0; y < rows_; y++)
      std::memcpy(below_.get() + y * row_, canvas + (top_ + y) * stride_ + left_, row_);
  }

  void dispose(uint8_t *out) const {
    for (size_t y = 0; y < rows_ && disposal_ != kLeave; y++) {
      uint8_t *target = out + (top_ + y) * stride_ + left_;
      if (disposal_ == kPrevious) std::memcpy(target, below_.get() + y * row_, row_);
      for (size_t at = 0; at < row_ && disposal_ == kBackground; at += pixel_) std::memcpy(target + at, zero_, pixel_);
    }
  }

  size_t pixel_, stride_, bytes_, channels_;
  bool has_alpha_, is_deep_;
  uint8_t zero_[8];
  uint8_t disposal_ = kLeave;
  size_t left_ = 0, top_ = 0, row_ = 0, rows_ = 0;
  Scratch below_;
};

engine_status inspect_frames(engine_cu8 file, uint64_t max_pixels, uint32_t most, Scan *scan, engine_png_info *info,
                             const char **reason) {
  engine_status status = png::scan(file, max_pixels, scan, reason);
  if (status != ENGINE_OK) return status;
  const uint64_t pixels = uint64_t{scan->width} * scan->height;
  uint64_t frames = 1;
  if (scan->announced_frames > 0 && most > 1) {
    status = each_frame(file, *scan, most, &frames, reason, [&](const Frame &, uint64_t number) {
      if (pixels <= max_pixels / (number + 1)) return ENGINE_OK;
      return refuse(reason, "its frames have more pixels than allowed", ENGINE_TOO_LARGE);
    });
    if (status != ENGINE_OK) return status;
  }
  const bool swaps = swaps_sides(orientation(scan->exif));
  const bool is_keyed = scan->transparency != nullptr && scan->colour != kPalette;
  *info = {swaps ? scan->height : scan->width,
           swaps ? scan->width : scan->height,
           scan->channels(),
           scan->result_depth(),
           static_cast<size_t>(pixels) * scan->result_pixel_bytes() * static_cast<size_t>(frames),
           scan->text_bytes,
           static_cast<uint32_t>(frames),
           is_keyed};
  return ENGINE_OK;
}

engine_status decode_frames(engine_u8 out, engine_cu8 file, const Scan &scan, uint32_t frames, const char **reason) {
  const size_t pixel = scan.result_pixel_bytes();
  const size_t bytes = size_t{scan.width} * scan.height * pixel;
  engine_status status = ENGINE_OK;
  if (frames == 1) {
    status = decode(file, scan, out.data, reason);
  } else {
    Canvas canvas(scan);
    uint64_t count = 0;
    status = each_frame(file, scan, frames, &count, reason, [&](const Frame &frame, uint64_t number) {
      uint8_t *target = out.data + number * bytes;
      return canvas.paint(file, frame, target, number == 0 ? nullptr : target - bytes, reason);
    });
  }
  const int way = orientation(scan.exif);
  if (status != ENGINE_OK || way == 1) return status;
  const Scratch stored = scratch(bytes);
  for (size_t k = 0; k < frames; k++) {
    std::memcpy(stored.get(), out.data + k * bytes, bytes);
    turn(way, stored.get(), scan.width, scan.height, pixel, out.data + k * bytes);
  }
  return ENGINE_OK;
}

}  // namespace
}  // namespace latentkit::png

extern "C" engine_status engine_png_inspect_frames(engine_cu8 file, uint64_t max_pixels, uint32_t most,
                                                   engine_png_info *info, const char **reason) {
  using namespace latentkit;
  const char *why = nullptr;
  png::Scan scan;
  const engine_status status =
      most == 0 ? ENGINE_BAD_ARGUMENT : png::inspect_frames(file, max_pixels, most, &scan, info, &why);
  if (reason != nullptr) *reason = why;
  return status;
}

extern "C" engine_status engine_png_decode_frames(engine_u8 out, engine_cu8 file, uint64_t max_pixels, uint32_t most,
                                                  const char **reason) {
  using namespace latentkit;
  const char *why = nullptr;
  const engine_status status = guarded([&] {
    if (most == 0) return ENGINE_BAD_ARGUMENT;
    png::Scan scan;
    engine_png_info info{};
    const engine_status result = png::inspect_frames(file, max_pixels, most, &scan, &info, &why);
    if (result != ENGINE_OK) return result;
    if (out.len < info.bytes) return ENGINE_NO_SPACE;
    return png::decode_frames(out, file, scan, info.frames, &why);
  });
  if (reason != nullptr) *reason = why;
  return status;
}
