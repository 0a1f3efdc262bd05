#include <csetjmp>
#include <cstdio>

#include "lmdb_tools/codecs.h"
// In this order: libjpeg's headers need FILE, and each other.
// clang-format off
#include <jpeglib.h>
#include <jerror.h>
// clang-format on

#include "lmdb/failure.h"

namespace sluice::lmdb {
namespace {

// libjpeg reports an error by not returning. Its frames are C, which an exception must not cross,
// so the error leaves by longjmp to a frame without destructors, and is thrown from there.
struct Errors {
  jpeg_error_mgr base;  // first member: libjpeg passes a pointer to it
  jmp_buf escape;
  char text[JMSG_LENGTH_MAX];
};

[[noreturn]] void on_error(j_common_ptr common) {
  auto* errors = reinterpret_cast<Errors*>(common->err);
  common->err->format_message(common, errors->text);
  longjmp(errors->escape, 1);
}

// libjpeg repairs what it can and warns. If the warning says that picture data is lost the file is
// damaged; other warnings, such as stray bytes between markers, are common in good collections.
bool loses_picture(int code) {
  return code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER || code == JWRN_HUFF_BAD_CODE ||
         code == JWRN_ARITH_BAD_CODE || code == JWRN_MUST_RESYNC;
}

void on_message(j_common_ptr common, int level) {
  if (level >= 0 || !loses_picture(common->err->msg_code)) return;
  if (++common->err->num_warnings > 1) return;
  common->err->format_message(common, reinterpret_cast<Errors*>(common->err)->text);
}

struct Job {
  std::span<const uint8_t> file;
  Image* image;  // nullptr: the header only
  ImageSize size;
  unsigned components;
};

bool cmyk(const jpeg_decompress_struct& info) {
  return info.jpeg_color_space == JCS_CMYK || info.jpeg_color_space == JCS_YCCK;
}

// The part that a longjmp may abort: it owns nothing. `rows` receives decoded lines.
bool decode_lines(jpeg_decompress_struct* info, Job* job) {
  auto* errors = reinterpret_cast<Errors*>(info->err);
  if (setjmp(errors->escape) != 0) return false;
  jpeg_create_decompress(info);
  jpeg_mem_src(info, job->file.data(), job->file.size());
  jpeg_read_header(info, TRUE);
  job->size = {info->image_width, info->image_height};
  if (job->image == nullptr) return true;
  if (info->jpeg_color_space == JCS_GRAYSCALE) {
    info->out_color_space = JCS_GRAYSCALE;
    job->components = 1;
  } else {
    info->out_color_space = cmyk(*info) ? JCS_CMYK : JCS_RGB;
    job->components = cmyk(*info) ? 4 : 3;
  }
  info->dct_method = JDCT_ISLOW;
  jpeg_start_decompress(info);
  const size_t stride = static_cast<size_t>(info->output_width) * job->components;
  job->image->pixels.resize(stride * info->output_height);
  while (info->output_scanline < info->output_height) {
    JSAMPROW row = job->image->pixels.data() + stride * info->output_scanline;
    jpeg_read_scanlines(info, &row, 1);
  }
  jpeg_finish_decompress(info);
  return true;
}

// Adobe writes its inks inverted, and so do all other programs since: 255 is no ink.
void inks_to_rgb(Image* image) {
  const size_t count = image->pixels.size() / 4;
  for (size_t i = 0; i < count; ++i) {
    const uint8_t* from = image->pixels.data() + 4 * i;
    const unsigned black = from[3];
    uint8_t* to = image->pixels.data() + 3 * i;
    for (int c = 0; c < 3; ++c) to[c] = static_cast<uint8_t>((from[c] * black + 127) / 255);
  }
  image->pixels.resize(count * 3);
}

void run(Job* job, const std::string& name) {
  jpeg_decompress_struct info{};
  Errors errors{};
  info.err = jpeg_std_error(&errors.base);
  errors.base.error_exit = on_error;
  errors.base.emit_message = on_message;
  const bool whole = decode_lines(&info, job) && errors.base.num_warnings == 0;
  jpeg_destroy_decompress(&info);
  if (!whole) fail("{} is a damaged JPEG file: {}", name, errors.text);
}

}  // namespace

bool is_jpeg(std::span<const uint8_t> file) {
  return file.size() > 3 && file[0] == 0xFF && file[1] == 0xD8 && file[2] == 0xFF;
}

ImageSize jpeg_size(std::span<const uint8_t> file, const std::string& name) {
  Job job{file, nullptr, {}, 0};
  run(&job, name);
  return job.size;
}

Image decode_jpeg(std::span<const uint8_t> file, const std::string& name) {
  Image image;
  Job job{file, &image, {}, 0};
  run(&job, name);
  if (job.components == 4) inks_to_rgb(&image);
  image.width = job.size.width;
  image.height = job.size.height;
  image.channels = job.components == 1 ? 1 : 3;
  return image;
}

}  // namespace sluice::lmdb
