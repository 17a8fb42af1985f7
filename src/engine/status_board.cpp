#include "engine/status_board.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "engine/comm_state.hpp"
#include "engine/operation.hpp"

namespace medley::core {

std::uint64_t StatusBoard::first_word(const Operation& operation) {
  const bool known = operation.lane && !operation.open_route;  // where the size is open the lane is a placeholder
  // relaxed: written under the engine's lock, which is held here
  const bool running = operation.state.load(std::memory_order_relaxed) == Operation::State::active;
  return pack({operation.comm->status->number, known ? operation.lane->place : no_lane, operation.call.op, running});
}

std::uint64_t StatusBoard::third_word(const Operation& operation) {
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(operation.collective() ? no_peer : operation.call.root));
}

StatusBoard::Words StatusBoard::Slot::read() const noexcept {
  Words copy{};
  for (int tries = 0; tries < 1000; ++tries) {
    const std::uint32_t before = version.load(std::memory_order_acquire);  // pairs with the last store of write()
    // With its others
    for (std::size_t i = 0; i < copy.size(); ++i) copy[i] = words[i].load(std::memory_order_acquire);
    // relaxed: after the words' acquire loads; a reader of a new word sees here that its writer had begun
    if (before % 2 == 0 && version.load(std::memory_order_relaxed) == before) return copy;
  }
  return {};  // a writer was descheduled in the middle: its record is skipped
}

std::shared_ptr<CommStatus> StatusBoard::add(const CommState& comm) {
  auto made = std::make_shared<CommStatus>();
  made->name = comm.name;
  made->rank = comm.rank;
  made->world_ranks = comm.world_ranks;
  for (const auto& lane : comm.lanes) made->lanes.push_back(lane->name);
  made->message_sizes = comm.message_sizes;
  const std::lock_guard lock(comms_mutex_);
  std::erase_if(comms_, [](const auto& entry) { return entry.second.expired(); });
  made->number = ++next_;
  comms_[made->number] = made;
  return made;
}

void StatusBoard::show(Operation& operation) noexcept {
  if (!operation.comm->status) return;
  if (operation.slot < 0) {
    note_poll();
    if (free_ == 0) return;
    operation.slot = std::countr_zero(free_);
    free_ &= free_ - 1;
  }
  const std::uint64_t words[] = {first_word(operation), operation.sequence, third_word(operation)};
  slots_[static_cast<std::size_t>(operation.slot)].write(words, std::size(words));
}

void StatusBoard::show_awaited(Operation& operation) {
  show(operation);
  if (operation.slot < 0) return;
  Words words{};
  words[0] = first_word(operation);
  words[1] = operation.sequence;
  words[2] = third_word(operation);
  for (const int member : operation.awaited()) {
    if (member >= 0 && member < most_ranks)
      words[static_cast<std::size_t>(3 + member / 64)] |= std::uint64_t{1} << (member % 64);
  }
  slots_[static_cast<std::size_t>(operation.slot)].write(words.data(), words.size());
  awaited_shown_ |= 1u << operation.slot;
}

void StatusBoard::hide(Operation& operation) noexcept { hide_message(std::exchange(operation.slot, -1)); }

/// Also the awaited ranks.
void StatusBoard::hide_all_of(int slot) noexcept {
  const Words nothing{};
  slots_[static_cast<std::size_t>(slot)].write(nothing.data(), nothing.size());
  awaited_shown_ &= ~(1u << slot);
  free_ |= 1u << slot;
}

std::shared_ptr<const CommStatus> StatusBoard::find(std::uint32_t number) const {
  const std::lock_guard lock(comms_mutex_);
  const auto found = comms_.find(number);
  return found == comms_.end() ? nullptr : found->second.lock();
}

nlohmann::json StatusBoard::describe(const Words& words) const {
  const Shown shown = unpack(words[0]);
  const auto comm = find(shown.comm);
  if (!comm) return nullptr;
  const auto lane = static_cast<std::size_t>(shown.lane);
  const auto peer = static_cast<int>(static_cast<std::int64_t>(words[2]));
  nlohmann::json text{{"op", name(shown.op)},
                      {"sequence", words[1]},
                      {"state", shown.running ? "running" : "held back"},
                      {"comm", comm->name}};
  if (lane < comm->lanes.size()) text["backend"] = comm->lanes[lane];
  if (peer != no_peer) text["peer"] = peer;
  for (std::size_t member = 0; member < comm->world_ranks.size() && member < most_ranks; ++member) {
    if ((words[3 + member / 64] >> (member % 64) & 1) == 0) continue;
    text["awaits"].push_back(member);
    text["awaits_world"].push_back(comm->world_ranks[member]);
  }
  return text;
}

std::vector<std::shared_ptr<const CommStatus>> StatusBoard::comms() const {
  std::vector<std::shared_ptr<const CommStatus>> all;
  const std::lock_guard lock(comms_mutex_);
  for (const auto& [number, weak] : comms_) {
    if (auto found = weak.lock()) all.push_back(std::move(found));
  }
  return all;
}

std::shared_ptr<const CommStatus> StatusBoard::find(const std::string& name) const {
  for (auto& comm : comms()) {
    if (comm->name == name) return std::move(comm);
  }
  return nullptr;
}

nlohmann::json StatusBoard::status(const std::string& name) const {
  const std::shared_ptr<const CommStatus> comm = find(name);
  if (!comm) return {{"unknown", true}};
  // Relaxed: as is `messages`, a count alone
  const std::uint64_t issued = comm->collectives.load(std::memory_order_relaxed);
  nlohmann::json status{{"rank", comm->rank},
                        {"world_rank", comm->world_ranks[static_cast<std::size_t>(comm->rank)]},
                        {"issued", issued},
                        {"messages", comm->messages.load(std::memory_order_relaxed)},
                        {"pending", nlohmann::json::array()},
                        {"elsewhere", nlohmann::json::array()}};
  std::vector<nlohmann::json> shown;
  for (const Slot& slot : slots_) {
    const Words words = slot.read();
    if (words[0] & slot_taken) shown.push_back(describe(words));
  }
  if (const std::uint64_t word = inline_.load(std::memory_order_acquire)) {  // pairs with show_inline()
    const Shown call = unpack_inline(word);
    const auto here = find(call.comm);
    Words words{};
    words[0] = pack(call);
    // relaxed: after the acquire load of inline_
    words[1] =
        !here ? 0 : (is_collective(call.op) ? here->collectives : here->messages).load(std::memory_order_relaxed);
    words[2] =
        static_cast<std::uint64_t>(static_cast<std::int64_t>(is_collective(call.op) ? no_peer : root_of_inline(word)));
    shown.push_back(describe(words));
  }
  std::erase(shown, nullptr);
  std::stable_sort(shown.begin(), shown.end(),
                   [](const auto& a, const auto& b) { return a["sequence"] < b["sequence"]; });
  std::uint64_t completed = issued;
  for (auto& operation : shown) {
    const bool here = operation["comm"] == comm->name;
    if (here && !operation.contains("peer"))
      completed = std::min(completed, operation["sequence"].get<std::uint64_t>() - 1);
    nlohmann::json& list = status[here ? "pending" : "elsewhere"];
    if (list.size() < 8) list.push_back(std::move(operation));
  }
  status["completed"] = completed;
  return status;
}

}  // namespace medley::core
