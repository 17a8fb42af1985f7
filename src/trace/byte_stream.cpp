#include "trace/byte_stream.hpp"

#include <fmt/format.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <medley/error.hpp>
#include <vector>

namespace medley::trace {
namespace {

constexpr std::size_t block_bytes = std::size_t{1} << 18;
constexpr std::size_t longest_line = std::size_t{1} << 20;
// A file of a few bytes can decompress to terabytes; no trace is this large.
constexpr std::uint64_t most_unpacked = std::uint64_t{1} << 38;

[[noreturn]] void refuse_stream(const std::string& place, const std::string& sentence) {
  throw Error(ErrorKind::invalid, fmt::format("{}: {}", place, sentence));
}

}  // namespace

/// Yields the decompressed bytes block by block.
class ByteStream::Unpacker {
 public:
  virtual ~Unpacker() = default;
  /// Bytes written to `into`; 0 at the end.
  virtual std::size_t next(char* into, std::size_t most) = 0;
};

struct ByteStream::Plain final : Unpacker {
  explicit Plain(const std::filesystem::path& path) : file(path, std::ios::binary) {
    if (!file) refuse_stream(path.native(), "cannot be opened");
  }
  std::size_t next(char* into, std::size_t most) override {
    file.read(into, static_cast<std::streamsize>(most));
    return static_cast<std::size_t>(file.gcount());
  }
  std::ifstream file;
};

struct ByteStream::Gzip final : Unpacker {
  Gzip(const std::filesystem::path& path) : plain(path), name(path.native()), packed(block_bytes) {
    if (inflateInit2(&stream, 15 + 16) != Z_OK) refuse_stream(name, "zlib could not be started");
  }
  ~Gzip() override { inflateEnd(&stream); }
  std::size_t next(char* into, std::size_t most) override {
    stream.next_out = reinterpret_cast<Bytef*>(into);
    stream.avail_out = static_cast<uInt>(most);
    while (stream.avail_out > 0) {
      if (stream.avail_in == 0) {
        stream.next_in = reinterpret_cast<Bytef*>(packed.data());
        stream.avail_in = static_cast<uInt>(plain.next(packed.data(), packed.size()));
        taken += stream.avail_in;
        if (stream.avail_in == 0) {
          if (!between) refuse_stream(name, fmt::format("is cut off: its gzip stream goes on after byte {}", taken));
          break;
        }
      }
      const int status = inflate(&stream, Z_NO_FLUSH);
      between = status == Z_STREAM_END;
      if (between) {
        inflateReset(&stream);  // several concatenated streams make one file
      } else if (status != Z_OK && status != Z_BUF_ERROR) {
        refuse_stream(
            name, fmt::format("is damaged: its gzip stream cannot be unpacked at byte {}", taken - stream.avail_in));
      }
    }
    return most - stream.avail_out;
  }
  Plain plain;
  std::string name;
  std::vector<char> packed;
  z_stream stream{};
  std::uint64_t taken = 0;
  bool between = false;
};

struct ByteStream::Zstd final : Unpacker {
  Zstd(const std::filesystem::path& path)
      : plain(path), name(path.native()), packed(block_bytes), stream(ZSTD_createDStream()) {
    if (!stream) refuse_stream(name, "zstd could not be started");
    ZSTD_DCtx_setParameter(stream, ZSTD_d_windowLogMax, 27);  // 128 MiB, what zstd itself accepts
  }
  ~Zstd() override { ZSTD_freeDStream(stream); }
  std::size_t next(char* into, std::size_t most) override {
    ZSTD_outBuffer out{into, most, 0};
    while (out.pos < out.size) {
      if (in.pos == in.size) {
        in = {packed.data(), plain.next(packed.data(), packed.size()), 0};
        taken += in.size;
        if (in.size == 0) {
          if (!between) refuse_stream(name, fmt::format("is cut off: its zstd frame goes on after byte {}", taken));
          break;
        }
      }
      const std::size_t status = ZSTD_decompressStream(stream, &out, &in);
      if (ZSTD_isError(status))
        refuse_stream(name, fmt::format("is damaged: its zstd frame cannot be unpacked at byte {}: {}",
                                        taken - (in.size - in.pos), ZSTD_getErrorName(status)));
      between = status == 0;
    }
    return out.pos;
  }
  Plain plain;
  std::string name;
  std::vector<char> packed;
  ZSTD_DStream* stream;
  ZSTD_inBuffer in{};
  std::uint64_t taken = 0;
  bool between = true;
};

ByteStream::ByteStream(const std::filesystem::path& path) : name_(path.native()) {
  auto plain = std::make_unique<Plain>(path);
  unsigned char magic[4] = {};
  const std::size_t got = plain->next(reinterpret_cast<char*>(magic), sizeof magic);
  plain->file.clear();
  plain->file.seekg(0);
  static constexpr unsigned char zstd[4] = {0x28, 0xb5, 0x2f, 0xfd};
  if (got >= 2 && magic[0] == 0x1f && magic[1] == 0x8b) source_ = std::make_unique<Gzip>(path);
  else if (got == 4 && std::memcmp(magic, zstd, 4) == 0) source_ = std::make_unique<Zstd>(path);
  else source_ = std::move(plain);
}

ByteStream::ByteStream(std::string_view text, std::string name) : name_(std::move(name)), block_(text) {
  setg(block_.data(), block_.data(), block_.data() + block_.size());
}

ByteStream::~ByteStream() = default;

ByteStream::int_type ByteStream::underflow() {
  if (gptr() == egptr() && source_) {
    block_.resize(block_bytes);
    block_.resize(source_->next(block_.data(), block_bytes));
    unpacked_ += block_.size();
    if (unpacked_ > most_unpacked) refuse_stream(name_, "unpacks to more than 256 GiB");
    setg(block_.data(), block_.data(), block_.data() + block_.size());
  }
  return gptr() == egptr() ? traits_type::eof() : traits_type::to_int_type(*gptr());
}

std::string_view ByteStream::head() {
  underflow();
  return {gptr(), static_cast<std::size_t>(egptr() - gptr())};
}

bool ByteStream::line(std::string& into) {
  into.clear();
  bool any = false;
  while (!traits_type::eq_int_type(underflow(), traits_type::eof())) {
    any = true;
    const auto left = static_cast<std::size_t>(egptr() - gptr());
    const char* end = static_cast<const char*>(std::memchr(gptr(), '\n', left));
    const std::size_t size = end ? static_cast<std::size_t>(end - gptr()) : left;
    if (into.size() < longest_line) into.append(gptr(), std::min(size, longest_line - into.size()));
    setg(eback(), gptr() + size + (end ? 1 : 0), egptr());
    if (end) break;
  }
  if (!into.empty() && into.back() == '\r') into.pop_back();
  return any;
}

std::string ByteStream::rest(std::size_t most) {
  std::string out;
  while (!traits_type::eq_int_type(underflow(), traits_type::eof())) {
    const auto left = static_cast<std::size_t>(egptr() - gptr());
    if (out.size() + left > most) refuse_stream(name_, fmt::format("is larger than {} MiB", most >> 20));
    out.append(gptr(), left);
    setg(eback(), egptr(), egptr());
  }
  return out;
}

}  // namespace medley::trace
