// A file as a byte stream, decompressed on the fly when it is gzip or zstd: traces are usually compressed,
// and a trace of a gigabyte must not be in memory at once. Used by the readers of other tools' traces.
#pragma once

#include <filesystem>
#include <memory>
#include <streambuf>
#include <string>
#include <string_view>

namespace medley::trace {

class ByteStream final : public std::streambuf {
 public:
  /// Throws Error(invalid) when it cannot be opened. `name` begins error messages.
  explicit ByteStream(const std::filesystem::path& path);
  /// Text that is already in memory.
  ByteStream(std::string_view text, std::string name);
  ~ByteStream() override;
  ByteStream(const ByteStream&) = delete;
  ByteStream& operator=(const ByteStream&) = delete;

  const std::string& name() const { return name_; }
  /// The first block of decompressed bytes, without consuming them.
  std::string_view head();
  /// The next line without its line end; false at the end of the stream. Lines longer than 1 MiB are cut.
  bool line(std::string& into);
  /// The rest of the stream; refuses more than `most` bytes.
  std::string rest(std::size_t most);

 protected:
  int_type underflow() override;

 private:
  class Unpacker;
  struct Plain;
  struct Gzip;
  struct Zstd;
  std::string name_;
  std::unique_ptr<Unpacker> source_;
  std::string block_;
  std::uint64_t unpacked_ = 0;
};

}  // namespace medley::trace
