// The bytes of a file as a stream, unpacked on the way where it is gzip or zstd: traces are usually kept so,
// and a gigabyte of one must not be in memory at once. Readers of other tools' traces take this.
#pragma once

#include <filesystem>
#include <memory>
#include <streambuf>
#include <string>
#include <string_view>

namespace medley::trace {

class ByteStream final : public std::streambuf {
 public:
  /// Throws Error(invalid) when it cannot be opened. `name` opens error messages.
  explicit ByteStream(const std::filesystem::path& path);
  /// Text that is already in memory.
  ByteStream(std::string_view text, std::string name);
  ~ByteStream() override;
  ByteStream(const ByteStream&) = delete;
  ByteStream& operator=(const ByteStream&) = delete;

  const std::string& name() const { return name_; }
  /// The first bytes, unpacked, without taking them: as many as the first block has.
  std::string_view head();
  /// The next line without its end; false at the end of the stream. Lines longer than 1 MiB are cut.
  bool line(std::string& into);
  /// Everything from here on; refuses more than `most` bytes.
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
