// Reads a peer's memory without an intermediate copy (process_vm_readv). Reads only: no rank writes into another's
// memory.
#pragma once

#include <cstddef>
#include <cstdint>

namespace medley::shm {

/// Bytes copied between two polls of other operations: large enough to hide the poll, small enough for latency.
inline constexpr std::size_t progress_quantum = 1u << 20;

/// The address of a word with a known value in this process, for probe_read().
std::uint64_t probe_address();
/// Whether that word of another process can be read; also allows all processes of this user to read ours (Yama).
bool probe_read(int process, std::uint64_t address);
/// Copies `bytes` from a peer on this host, which is `rank` in the comm; throws when it cannot, for instance when the
/// peer died.
void direct_read(void* to, int process, std::uint64_t from, std::size_t bytes, int rank);

}  // namespace medley::shm
