#include "trace/kineto_events.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <istream>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "trace/import_parts.hpp"

namespace medley::trace {
namespace {

enum class Slot : std::uint8_t {
  none,
  category,
  name,
  ts,
  dur,
  tid,
  args,
  external_id,
  in,
  out,
  group_size,
  sequence,
  source,
  destination,
  async,
  collective,
  dtype,
  group_name,
  group_description,
  group_ranks,
  rank,
  world,
};

Slot slot_of(const std::string& key, bool args) {
  static const std::unordered_map<std::string, Slot> event = {{"cat", Slot::category}, {"name", Slot::name},
                                                              {"ts", Slot::ts},        {"dur", Slot::dur},
                                                              {"tid", Slot::tid},      {"args", Slot::args}};
  static const std::unordered_map<std::string, Slot> inner = {{"External id", Slot::external_id},
                                                              {"external id", Slot::external_id},
                                                              {"In msg nelems", Slot::in},
                                                              {"Out msg nelems", Slot::out},
                                                              {"Group size", Slot::group_size},
                                                              {"Seq", Slot::sequence},
                                                              {"Src Rank", Slot::source},
                                                              {"Dst Rank", Slot::destination},
                                                              {"Is asynchronized op", Slot::async},
                                                              {"Collective name", Slot::collective},
                                                              {"dtype", Slot::dtype},
                                                              {"Process Group Name", Slot::group_name},
                                                              {"Process Group Description", Slot::group_description},
                                                              {"Process Group Ranks", Slot::group_ranks}};
  const auto& map = args ? inner : event;
  const auto found = map.find(key);
  return found == map.end() ? Slot::none : found->second;
}

/// Tracks the nesting and fills the current event.
class Handler {
 public:
  Handler(const std::string& place, const std::function<void(KinetoEvent&)>& visit) : place_(place), visit_(visit) {}

  bool key(std::string& name) {
    slot_ = Slot::none;
    if (depth_ == 1) {
      root_key_ = name == "traceEvents" ? Root::events : name == "distributedInfo" ? Root::info : Root::other;
    } else if (depth_ == event_depth_) {
      slot_ = slot_of(name, false);
    } else if (in_args_ && depth_ == event_depth_ + 1) {
      slot_ = slot_of(name, true);
    } else if (depth_ == 2 && root_key_ == Root::info && event_depth_ == 0) {
      slot_ = name == "rank" ? Slot::rank : name == "world_size" ? Slot::world : Slot::none;
    }
    return true;
  }
  bool start_object(std::size_t) {
    ++depth_;
    if (depth_ == list_depth_ + 1 && list_depth_ > 0) {
      event_ = KinetoEvent{};
      event_.number = count_;
      event_depth_ = depth_;
      in_args_ = false;
    } else if (event_depth_ > 0 && depth_ == event_depth_ + 1) {
      in_args_ = slot_ == Slot::args;
    }
    slot_ = Slot::none;
    return true;
  }
  bool end_object() {
    if (event_depth_ > 0 && depth_ == event_depth_) {
      visit_(event_);
      event_depth_ = 0;
      ++count_;
    } else if (in_args_ && depth_ == event_depth_ + 1) {
      in_args_ = false;
    }
    --depth_;
    return true;
  }
  bool start_array(std::size_t) {
    ++depth_;
    const bool events = (depth_ == 1) || (depth_ == 2 && root_key_ == Root::events);
    if (events && list_depth_ == 0) {
      list_depth_ = depth_;
      info.has_events = true;
    }
    slot_ = Slot::none;
    return true;
  }
  bool end_array() {
    if (depth_ == list_depth_) list_depth_ = 0;
    --depth_;
    return true;
  }

  bool string(std::string& value) {
    const Slot slot = std::exchange(slot_, Slot::none);
    switch (slot) {
      case Slot::category: event_.category.swap(value); break;
      case Slot::name: event_.name.swap(value); break;
      case Slot::collective: event_.collective.swap(value); break;
      case Slot::dtype: event_.dtype.swap(value); break;
      case Slot::group_name: event_.group_name.swap(value); break;
      case Slot::group_description: event_.group_description.swap(value); break;
      case Slot::group_ranks: event_.group_ranks.swap(value); break;
      case Slot::none: break;
      default: return text_number(slot, value);
    }
    return true;
  }
  bool number_integer(std::int64_t value) { return whole(value); }
  bool number_unsigned(std::uint64_t value) {
    return whole(static_cast<std::int64_t>(std::min<std::uint64_t>(value, std::int64_t{1} << 62)));
  }
  bool number_float(double value, const std::string&) {
    const double sane = std::isfinite(value) && std::abs(value) < 9e18 ? value : -1;
    if (slot_ == Slot::ts) event_.ts = sane;
    else if (slot_ == Slot::dur) event_.dur = std::max(0.0, sane);
    else  // what exceeds 64 bits arrives as a float, and must not look absent
      return whole(value > 9e18 ? std::int64_t{1} << 62 : static_cast<std::int64_t>(sane));
    slot_ = Slot::none;
    return true;
  }
  bool boolean(bool value) {
    if (std::exchange(slot_, Slot::none) == Slot::async) event_.async = value;
    return true;
  }
  bool null() {
    slot_ = Slot::none;
    return true;
  }
  bool binary(nlohmann::json::binary_t&) { return true; }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception& error) {
    refuse_import(place_, error.id == 406 ? std::string("holds a number that is too large")
                                          : fmt::format("is not JSON from byte {} on", position));
  }

  KinetoInfo info;

 private:
  enum class Root { other, events, info };

  /// Some versions write numbers as text.
  bool text_number(Slot slot, const std::string& value) {
    const bool digits =
        !value.empty() && value.size() < 19 && value.find_first_not_of("0123456789") == std::string::npos;
    slot_ = slot;
    return digits ? whole(std::stoll(value)) : null();
  }
  bool whole(std::int64_t value) {
    switch (std::exchange(slot_, Slot::none)) {
      case Slot::ts: event_.ts = static_cast<double>(value); break;
      case Slot::dur: event_.dur = std::max(0.0, static_cast<double>(value)); break;
      case Slot::tid: event_.tid = value; break;
      case Slot::external_id: event_.external_id = value; break;
      case Slot::in: event_.in = value; break;
      case Slot::out: event_.out = value; break;
      case Slot::group_size: event_.group_size = value; break;
      case Slot::sequence: event_.sequence = value; break;
      case Slot::source: event_.source = value; break;
      case Slot::destination: event_.destination = value; break;
      case Slot::async: event_.async = value != 0; break;
      case Slot::group_name: event_.group_name = std::to_string(value); break;
      case Slot::rank: info.rank = value; break;
      case Slot::world: info.world = value; break;
      default: break;
    }
    return true;
  }

  const std::string& place_;
  const std::function<void(KinetoEvent&)>& visit_;
  KinetoEvent event_;
  std::size_t count_ = 0;
  int depth_ = 0, list_depth_ = 0, event_depth_ = 0;
  bool in_args_ = false;
  Root root_key_ = Root::other;
  Slot slot_ = Slot::none;
};

}  // namespace

KinetoInfo read_kineto_events(ByteStream& in, const std::function<void(KinetoEvent&)>& visit) {
  Handler handler(in.name(), visit);
  std::istream stream(&in);
  nlohmann::json::sax_parse(stream, &handler);
  return handler.info;
}

}  // namespace medley::trace
