// The expected effect of a program on memory: executes its steps sequentially, for all ranks, without the
// runtime. The generator runs it alongside to know the values that a reduction would combine; a rank compares
// its memory with it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "soak/program.hpp"

namespace medley::soak {

class Oracle {
 public:
  explicit Oracle(const Program& program);
  /// Whether a reduction has one exact result with the current values, in any order of combining.
  bool exact(const Step& step) const;
  /// The largest magnitude of a collective's inputs, all ranks together; none where one is not finite.
  std::optional<double> largest_input(const Step& step) const;
  void apply(int step);
  const std::vector<std::byte>& memory(int rank) const { return memory_[static_cast<std::size_t>(rank)]; }
  /// A hash of the bytes that a touch reads.
  std::uint64_t found(int step) const { return found_[static_cast<std::size_t>(step)]; }
  /// The exact results of a collective that rounds, by rank of its comm, and how far from them it may be.
  struct Rounded {
    std::vector<std::vector<std::byte>> exact{};
    double error = 0;
  };
  const Rounded& rounded(int step) const { return rounded_.at(step); }

 private:
  std::byte* at(const Step& step, int member, std::int64_t byte);
  const std::byte* at(const Step& step, int member, std::int64_t byte) const;
  void collective(const Step& step);
  void copy_collective(const Step& step, const std::vector<std::vector<std::byte>>& given);
  void reduce(const Step& step, const std::vector<std::vector<std::byte>>& given);
  std::vector<std::byte> given_by(const Step& step, int member) const;
  void take(const Step& step, int member, int part, const std::byte* from, std::int64_t count);

  const Program& program_;
  std::vector<std::vector<std::byte>> memory_;
  std::vector<std::uint64_t> found_;
  std::map<int, Rounded> rounded_;
};

std::uint64_t hash(const std::byte* data, std::int64_t bytes);

/// The oracle after all steps; empty when some reduction has no exact result, as can happen in a shrunk
/// program.
std::optional<Oracle> expect(const Program& program);

}  // namespace medley::soak
