// An anonymous shared memory segment: made by one rank, opened by its peers through the maker's /proc entry. It never
// has a name in /dev/shm, so nothing can be left behind there.
#pragma once

#include <cstddef>
#include <medley/store.hpp>
#include <memory>
#include <string>

namespace medley::shm {

class Segment {
 public:
  /// Makes one, populates its beginning and publishes its address in the store, or the reason for failure: its peers
  /// wait for one or the other.
  static Segment publish(std::size_t bytes, std::size_t populated, const std::string& purpose, Store& store,
                         const std::string& key);
  /// Opens a published segment; throws the reason if it could not be made.
  static Segment open_published(const std::string& published, std::size_t bytes);
  /// Makes one of `bytes`, zeroed; throws when /dev/shm has no room, naming the size needed.
  static Segment make(std::size_t bytes, const std::string& purpose);
  /// The same; `reserve`: allocates all its memory now, for kernels that cannot populate() parts of it later.
  static Segment make(std::size_t bytes, const std::string& purpose, bool reserve);
  /// Opens the segment that another process published under `address()`.
  static Segment open(const std::string& address, std::size_t bytes);

  Segment(Segment&& other) noexcept;
  Segment& operator=(Segment&&) = delete;
  ~Segment();

  std::byte* data() const { return data_.get(); }
  /// Where peers open it, until seal().
  std::string address() const;
  /// Call after the last peer has opened it: nobody else can open it then.
  void seal() noexcept;
  /// False in a forked child, which has no such memory (MADV_DONTFORK) and may have something else there.
  bool here() const;
  /// Allocates memory for a part now, so that a full /dev/shm is an error here and not a SIGBUS later.
  void populate(std::size_t offset, std::size_t bytes) const;

 private:
  Segment(int file, std::shared_ptr<std::byte> data);
  int process_;
  int file_;
  std::shared_ptr<std::byte> data_;  ///< the mapping
};

}  // namespace medley::shm
