// How a message becomes MPI messages. Used by the lane, which sends, and by receives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <medley/backend.hpp>

namespace medley::mpi {

/// Every message begins with one MPI message of bounded length, its first part, so that a receive can be posted before
/// the length is known: in Open MPI 4.1 a message above the eager limit overruns a receive that is too short, and MPICH
/// ends a process whose application initialised MPI.
///
/// The length of the first part says what it is:
///   header_bytes  a header alone; the whole message follows
///   first_bytes   the first `whole_bytes` of the message, then a header; the rest follows
///   other         the whole message
/// What follows is sent on the internal communicator, with the tag that the header names. The same on all ranks of a
/// comm.
struct Header {
  std::int64_t bytes;  ///< of the whole message
  std::int32_t tag;    ///< of what follows
};
/// An odd length that few messages have: those follow a header, too.
inline constexpr std::size_t header_bytes = 13;
static_assert(header_bytes > sizeof(std::int64_t) + sizeof(std::int32_t));

class Wire {
 public:
  /// `far`: some ranks of the comm are on other hosts.
  explicit Wire(bool far) : first_bytes_(far ? far_bytes : near_bytes), in_slices_(far ? 0 : near_in_slices) {}

  std::size_t first_bytes() const { return first_bytes_; }
  bool is_whole(std::size_t bytes) const { return bytes <= whole_bytes() && bytes != header_bytes; }
  /// How much of a message that is not whole goes with its header.
  std::size_t with_header(std::size_t bytes) const {
    return bytes > header_bytes && bytes <= in_slices_ ? whole_bytes() : 0;
  }
  /// What follows the header is sent in slices of this size.
  std::size_t slice(std::size_t bytes) const { return bytes <= in_slices_ ? first_bytes_ : bytes; }
  bool has_header(std::size_t first) const { return first == header_bytes || first == first_bytes_; }

 private:
  // Open MPI's eager limit between ranks of one host is 4 KiB, with its own header of up to 72 bytes. Between hosts
  // each message is a system call, and a copy costs little beside it: two namespace hosts, 64 KiB 51 µs after a header,
  // 41 matched before it was received.
  static constexpr std::size_t near_bytes = 4000, far_bytes = (64u << 10) + header_bytes;
  // A rendezvous inside a host costs two system calls, and every slice after the first is copied once more where it
  // arrives before it is awaited. By Open MPI, one way, µs. EPYC guest: 4 KiB 1.8, in two slices 0.6; 16 KiB 2.5 and in
  // five 1.2 on cores that share a cache, 3.3 and 3.2 on cores that do not. Xeon guest: 4 KiB 2.0 and 1.7; 7,900 bytes
  // 2.1 and 2.4; 16 KiB 2.5 and 4.5.
  static constexpr std::size_t near_in_slices = 2 * near_bytes - header_bytes;

  std::size_t whole_bytes() const { return first_bytes_ - header_bytes; }

  std::size_t first_bytes_;
  std::size_t in_slices_;  ///< messages up to here
};

inline void write_header(std::byte* to, const Header& header) {
  std::memset(to, 0, header_bytes);
  std::memcpy(to, &header.bytes, sizeof header.bytes);
  std::memcpy(to + sizeof header.bytes, &header.tag, sizeof header.tag);
}
inline Header read_header(const std::byte* from) {
  Header header;
  std::memcpy(&header.bytes, from, sizeof header.bytes);
  std::memcpy(&header.tag, from + sizeof header.bytes, sizeof header.tag);
  return header;
}

/// Tags of what follows headers, on the internal communicator: above those of filled-in collectives and of notices. A
/// sender counts through them, so that a tag is free again long before it is reused.
inline constexpr int first_rest_tag = internal_tags + 1, rest_tags = 1 << 20;

}  // namespace medley::mpi
