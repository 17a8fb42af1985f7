// Prints programs as pseudo-code: the comms, then each rank's actions, line by line.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "soak/program.hpp"

namespace medley::soak {
namespace {

std::string place(std::int64_t at, std::int64_t count, DType dtype) {
  return fmt::format("m[{}:{}]", at, at + count * static_cast<std::int64_t>(size_of(dtype)));
}

std::string place(const Side& side, DType dtype) {
  if (side.counts.empty()) return place(side.at, side.count, dtype);
  return fmt::format("{} parts {} at {}", place(side.at, side.count, dtype), side.counts, side.offsets);
}

std::string route(const Step& s) {
  std::string text;
  if (!s.backend.empty()) text += ", over " + s.backend;
  if (!s.algorithm.empty()) text += " by " + s.algorithm;
  if (s.deterministic) text += ", deterministic";
  if (s.tensors > 0) text += fmt::format(", as {} tensors in a {}", s.tensors, s.in_scope ? "fuse scope" : "list");
  return text;
}

std::string collective(const Step& s, int me) {
  const Share& share = s.shares[static_cast<std::size_t>(me)];
  std::string text = fmt::format("{}(", name(s.op));
  if (s.op != Op::barrier) {
    text += fmt::format("{} {} -> {}", name(s.dtype), place(share.in, s.dtype), place(share.out, s.dtype));
    if (reduces(s.op)) {
      text += fmt::format(", {}", name(s.reduce));
    }
    if (rooted(s.op)) {
      text += fmt::format(", root {}", s.root);
    }
  }
  return text + ")";
}

std::string messages(const Step& s, int me) {
  std::string text;
  for (const Packet& p : s.packets) {
    const char* comma = text.empty() ? "" : "; ";
    if (p.from == me)
      text += fmt::format("{}send {} {} to {} tag {}", comma, name(s.dtype), place(p.from_at, p.count, s.dtype), p.to,
                          p.tag);
    if (p.from == me) comma = "; ";
    if (p.to == me) {
      text += fmt::format("{}recv {} {} from {} tag {}", comma, name(s.dtype), place(p.to_at, p.room, s.dtype),
                          p.any_source ? fmt::format("any ({})", p.from) : std::to_string(p.from), p.tag);
    }
  }
  return "{" + text + "}";
}

std::string step_text(const Program& program, const Step& s, int rank) {
  const CommPlan& comm = program.comm(s.comm);
  const int me = rank_in(comm, rank);
  switch (s.kind) {
    case Kind::collective: return fmt::format("{}.{}{}", comm.name, collective(s, me), route(s));
    case Kind::messages:
    case Kind::any_source: return fmt::format("{}.{}{}", comm.name, messages(s, me), route(s));
    case Kind::touch: return fmt::format("look at m[{}:{}] and write it", s.at, s.at + s.bytes);
    case Kind::drop: return fmt::format("let {} go", comm.name);
    default: break;
  }
  const int color = s.colors[static_cast<std::size_t>(me)];
  const std::string made = color < 0 ? "(none)" : program.comm(s.made[static_cast<std::size_t>(color)]).name;
  const char* how = s.kind == Kind::split ? "split" : s.kind == Kind::dup ? "dup" : "subset";
  return fmt::format("{} = {}.{}()", made, comm.name, how);
}

std::string action_text(const Program& program, const Action& action, int rank) {
  switch (action.act) {
    case Act::delay: return fmt::format("sleep {} µs", action.microseconds);
    case Act::fork: return "fork a child that calls a barrier";
    case Act::test: return fmt::format("test w{}", action.step);
    case Act::finish:
      return fmt::format("wait w{}{}", action.step,
                         action.wait == Wait::test       ? " by testing"
                         : action.wait == Wait::deadline ? " with a deadline"
                         : action.wait == Wait::endless  ? " with an endless deadline"
                                                         : "");
    default: break;
  }
  return fmt::format("{}{}{}", action.async ? fmt::format("w{} = ", action.step) : fmt::format("#{} ", action.step),
                     step_text(program, program.step(action.step), rank),
                     action.async          ? (action.dropped ? ", async, Work dropped" : ", async")
                     : action.max_wait > 0 ? fmt::format(", max_wait {} µs", action.max_wait)
                                           : "");
}

}  // namespace

std::string to_text(const Program& program) {
  std::size_t steps = 0;
  for (const Step& step : program.steps) steps += !step.removed;
  std::string text =
      fmt::format("program {} on {} ranks, {} steps, {} bytes of memory m on each rank{}\n", program.seed,
                  program.ranks, steps, program.memory, program.progress_thread ? ", with a progress thread" : "");
  for (const CommPlan& comm : program.comms) {
    if (comm.made_by >= 0 && program.step(comm.made_by).removed) continue;
    text +=
        fmt::format("  {} = ranks {}{}{}{}{}\n", comm.name, fmt::join(comm.members, ", "), comm.fuse ? ", fuses" : "",
                    comm.exact ? ", exact sizes" : "", comm.rules.empty() ? "" : ", rules ", comm.rules);
  }
  for (int r = 0; r < program.ranks; ++r) {
    text += fmt::format("rank {}:\n", r);
    const auto& phases = program.streams[static_cast<std::size_t>(r)];
    for (const auto& phase : phases) {
      for (std::size_t t = 0; t < phase.size(); ++t) {
        if (phase.size() > 1 && !phase[t].empty()) text += fmt::format("  thread {} of {}:\n", t, phase.size());
        for (const Action& action : phase[t])
          text += fmt::format("{}  {}\n", phase.size() > 1 ? "  " : "", action_text(program, action, r));
      }
    }
  }
  return text;
}

}  // namespace medley::soak
