// Reading a neighbour's memory without a copy in between (process_vm_readv). Reads only: nobody writes into another.
#pragma once

#include <cstddef>
#include <cstdint>

namespace medley::shm {

/// Copied between two looks at other operations: large enough to be nothing beside the copy, small enough for latency.
inline constexpr std::size_t progress_quantum = 1u << 20;

/// The address of a word with a known value in this process, for probe_read().
std::uint64_t probe_address();
/// Whether that word of another process can be read; also lets all processes of this user read ours (Yama).
bool probe_read(int process, std::uint64_t address);
/// Copies `bytes` from a neighbour, which is `rank` in the comm; throws when it cannot, as when the neighbour died.
void direct_read(void* to, int process, std::uint64_t from, std::size_t bytes, int rank);

}  // namespace medley::shm
