// What this rank is doing, readable without a lock. The engine writes it, under its own lock, before it calls a
// library; the control thread reads it when another rank asks. So a rank that is stuck inside a library, with the
// engine's lock held, still answers.
//
// Fixed-size records, each a seqlock: an odd version means that the words are being written. Words are stored with
// release and loaded with acquire: a reader of a new word therefore sees the odd version that was stored before it, and
// retries.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include <medley/types.hpp>

namespace medley::core {

class MessageSizes;
class Operation;
class CommState;

/// A comm as the board shows it. Lives as long as the comm; names and ranks never change.
struct CommStatus {
  std::uint32_t number = 0;  ///< on the board
  std::string name;
  int rank = 0;
  std::vector<int> world_ranks;
  std::vector<std::string> lanes;                          ///< by LaneState::place
  std::shared_ptr<MessageSizes> message_sizes;             ///< null where none are compared
  std::atomic<std::uint64_t> collectives{0}, messages{0};  ///< issued; relaxed: each is read on its own
};

class StatusBoard {
 public:
  static constexpr int slots = 32;         ///< the oldest pending operations are shown
  static constexpr int most_ranks = 1024;  ///< awaited ranks beyond this are not shown
  static constexpr int no_lane = 0xffff;

  /// Registers the comm under a number. Called once its lanes exist.
  std::shared_ptr<CommStatus> add(const CommState& comm);

  // Called by the engine, under its lock.
  void show(Operation& operation) noexcept;  ///< also updates its state; does nothing if no slot is free
  void show_awaited(Operation& operation);   ///< also shows the awaited ranks
  void hide(Operation& operation) noexcept;
  /// The same for a message that has started; returns its slot, -1 if none is free.
  int show_message(const CommStatus& comm, int lane, Op op, std::uint64_t sequence, int peer) noexcept {
    note_poll();
    if (free_ == 0) return -1;
    const int slot = std::countr_zero(free_);
    free_ &= free_ - 1;
    slots_[static_cast<std::size_t>(slot)].write_first(pack({comm.number, lane, op, true}), sequence,
                                                       static_cast<std::uint64_t>(static_cast<std::int64_t>(peer)));
    return slot;
  }
  void hide_message(int slot) noexcept {
    if (slot < 0) return;
    const std::uint32_t bit = 1u << slot;
    if (awaited_shown_ & bit) [[unlikely]]
      return hide_all_of(slot);
    slots_[static_cast<std::size_t>(slot)].write_first(std::uint64_t{0});
    free_ |= bit;
  }
  /// A blocking call that is not pending yet.
  void show_inline(const CommStatus& comm, int lane, Op op, int root) noexcept {
    note_poll();
    inline_.store(pack_inline({comm.number, lane, op, true}, root),
                  std::memory_order_release);  // pairs with the acquire load in status(): its comm's count is as new
  }
  void hide_inline() noexcept { inline_.store(0, std::memory_order_release); }  // pairs with status()
  // relaxed: a liveness counter; one writer, the holder of the engine's lock
  void note_poll() noexcept { polls_.store(polls_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed); }

  // Called by any thread, without the engine's lock.
  /// The comms that exist.
  std::vector<std::shared_ptr<const CommStatus>> comms() const;
  std::shared_ptr<const CommStatus> find(const std::string& comm) const;
  /// What diagnose() parses.
  nlohmann::json status(const std::string& comm) const;
  /// How often the engine has polled (relaxed: only compared with its earlier value). A rank with pending operations
  /// that does not poll is inside a library, or away.
  std::uint64_t polls() const noexcept { return polls_.load(std::memory_order_relaxed); }

 private:
  // Word 0: a Shown and a bit that marks the slot as taken. Word 1: the sequence number. Word 2: the peer of a message,
  // or no_peer. Then the awaited ranks of the comm, a bit each.
  static constexpr std::uint64_t slot_taken = 1, slot_running = 2;
  static constexpr int no_peer = -2;  // -1 is any source
  struct Shown {
    std::uint32_t comm;  ///< its number
    int lane;
    Op op;
    bool running;
  };
  [[gnu::always_inline]] static constexpr std::uint64_t pack(const Shown& shown) noexcept {
    return static_cast<std::uint64_t>(shown.comm) << 32 | static_cast<std::uint64_t>(shown.lane) << 16 |
           static_cast<std::uint64_t>(shown.op) << 8 | (shown.running ? slot_running : 0) | slot_taken;
  }
  [[gnu::always_inline]] static constexpr Shown unpack(std::uint64_t word) noexcept {
    return {static_cast<std::uint32_t>(word >> 32), static_cast<int>(word >> 16 & 0xffff),
            static_cast<Op>(word >> 8 & 0xff), (word & slot_running) != 0};
  }
  // A blocking call that is not pending takes one word: with 16 bits of its root, and 8 of its lane.
  [[gnu::always_inline]] static constexpr std::uint64_t pack_inline(const Shown& shown, int root) noexcept {
    return static_cast<std::uint64_t>(shown.comm) << 32 | static_cast<std::uint64_t>(root & 0xffff) << 16 |
           static_cast<std::uint64_t>(shown.lane & 0xff) << 8 | static_cast<std::uint64_t>(shown.op) << 1 | 1u;
  }
  [[gnu::always_inline]] static constexpr Shown unpack_inline(std::uint64_t word) noexcept {
    return {static_cast<std::uint32_t>(word >> 32), static_cast<int>(word >> 8 & 0xff),
            static_cast<Op>(word >> 1 & 0x7f), true};
  }
  [[gnu::always_inline]] static constexpr int root_of_inline(std::uint64_t word) noexcept {
    return static_cast<std::int16_t>(word >> 16 & 0xffff);
  }
  static std::uint64_t first_word(const Operation& operation);
  static std::uint64_t third_word(const Operation& operation);
  void hide_all_of(int slot) noexcept;
  static constexpr int awaited_words = most_ranks / 64;
  using Words = std::array<std::uint64_t, 3 + awaited_words>;
  struct alignas(64) Slot {
    std::atomic<std::uint32_t> version{0};
    std::array<std::atomic<std::uint64_t>, std::tuple_size_v<Words>> words{};
    void write(const std::uint64_t* from, std::size_t count) noexcept {
      // Relaxed: written by the holder of the engine's lock alone
      const std::uint32_t now = version.load(std::memory_order_relaxed);
      // Relaxed: ordered by the stores of the words, which release it
      version.store(now + 1, std::memory_order_relaxed);
      for (std::size_t i = 0; i < count; ++i) words[i].store(from[i], std::memory_order_release);  // pairs with read()
      version.store(now + 2, std::memory_order_release);                                           // pairs with read()
    }
    /// The same for the first words, from registers.
    template <class... Word>
    [[gnu::always_inline]] void write_first(Word... from) noexcept {
      const std::uint32_t now = version.load(std::memory_order_relaxed);  // relaxed: as are all orders here, as above
      version.store(now + 1, std::memory_order_relaxed);
      std::size_t i = 0;
      (words[i++].store(from, std::memory_order_release), ...);  // pairs with read()
      version.store(now + 2, std::memory_order_release);         // pairs with read()
    }
    Words read() const noexcept;
  };
  std::shared_ptr<const CommStatus> find(std::uint32_t number) const;
  nlohmann::json describe(const Words& words) const;

  std::array<Slot, slots> slots_;
  std::uint32_t free_ = ~0u;         ///< the engine's: a bit per free slot
  std::uint32_t awaited_shown_ = 0;  ///< a bit per slot whose awaited ranks were written
  std::atomic<std::uint64_t> inline_{0};
  std::atomic<std::uint64_t> polls_{0};
  mutable std::mutex comms_mutex_;  ///< guards what follows; never held across anything that waits
  std::map<std::uint32_t, std::weak_ptr<CommStatus>> comms_;
  std::uint32_t next_ = 0;
};

}  // namespace medley::core
