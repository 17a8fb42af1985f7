#include "engine/self_message.hpp"

#include <fmt/format.h>

#include <cstdio>

#include "base/ticks.hpp"
#include "engine/comm_state.hpp"

namespace medley::core {
namespace {

constexpr double hint_after_ns = 1e9;
constexpr const char* send_advice = "post the receive, with async, before you wait for the send";

}  // namespace

bool is_self_message(const Operation& operation) {
  return !operation.collective() && operation.call.root == operation.comm->rank;
}

std::string self_message_advice(const Operation& operation) {
  if (!is_self_message(operation)) return "";
  return operation.call.op == Op::send
             ? fmt::format("; this rank sends to itself, and nothing here received the message: {}", send_advice)
             : "; this rank receives from itself, and nothing here sent the message: send it before you wait for the receive";
}

bool hint_at_self_send(const Operation& operation, const Record& record) {
  if (operation.call.op != Op::send || !is_self_message(operation)) return false;
  if (static_cast<double>(ticks() - record.issued) * ns_per_tick() < hint_after_ns) return false;
  fmt::print(stderr, "medley: comm {}: rank {} waits in send #{} to itself until something here receives it; {}\n",
             operation.comm->name, operation.comm->rank, operation.sequence, send_advice);
  return true;
}

}  // namespace medley::core
