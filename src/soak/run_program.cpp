#include "soak/run_program.hpp"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

#include "soak/rank_memory.hpp"
#include "soak/values.hpp"

namespace medley::soak {
namespace {

/// Counts and offsets of one call, overwritten when it returns, so that a late reader gets garbage.
struct Lists {
  explicit Lists(const Share& share)
      : in_counts(share.in.counts),
        in_offsets(share.in.offsets),
        out_counts(share.out.counts),
        out_offsets(share.out.offsets) {}
  ~Lists() {
    for (auto* list : {&in_counts, &in_offsets, &out_counts, &out_offsets})
      std::fill(list->begin(), list->end(), -0x5a5a5a5a5a);
  }
  Lists(const Lists&) = delete;
  Lists& operator=(const Lists&) = delete;
  std::vector<std::int64_t> in_counts, in_offsets, out_counts, out_offsets;
};

class Runner {
 public:
  Runner(Context& context, const Program& program, const Oracle& oracle, Memory memory,
         const std::function<void(const std::exception&)>& complain)
      : program_(program),
        oracle_(oracle),
        complain_(complain),
        rank_(context.rank()),
        kind_(memory),
        memory_(initial_memory(program, rank_), memory),
        comms_(program.comms.size()),
        works_(program.steps.size()),
        of_tensors_(program.steps.size()) {
    comms_[0] = context.world();
  }

  std::string run() {
    const auto& phases = program_.streams[static_cast<std::size_t>(rank_)];
    for (const auto& phase : phases) {
      std::vector<std::thread> threads;
      for (std::size_t t = 1; t < phase.size(); ++t) threads.emplace_back([&, t] { run_stream(phase[t]); });
      run_stream(phase[0]);
      for (auto& thread : threads) thread.join();
      if (failure_) std::rethrow_exception(failure_);
    }
    compare();
    return wrong_;
  }

 private:
  const Step& step(int number) const { return program_.step(number); }
  Comm& comm(const Step& s) { return comms_[static_cast<std::size_t>(s.comm)]; }

  void run_stream(const Stream& stream) {
    try {
      for (const Action& action : stream) {
        if (failed_) return;
        act(action);
      }
    } catch (const std::exception& error) {
      complain_(error);
      const std::lock_guard lock(mutex_);
      if (!failure_) failure_ = std::current_exception();
      failed_ = true;
    }
  }

  void act(const Action& action) {
    Work& work = works_[static_cast<std::size_t>(action.step)];
    switch (action.act) {
      case Act::delay: std::this_thread::sleep_for(std::chrono::microseconds(action.microseconds)); break;
      case Act::fork: try_in_child(); break;
      case Act::test: work.test(); break;
      case Act::finish:
        finish(work, action.wait), check_source(action.step, work);
        for (Work& tensor : of_tensors_[static_cast<std::size_t>(action.step)]) finish(tensor, action.wait);
        break;
      case Act::issue:
        work = issue(action);
        if (action.max_wait > 0) work.wait();
        if (!action.async) check_source(action.step, work);
        if (action.dropped) work = Work(), of_tensors_[static_cast<std::size_t>(action.step)].clear();
    }
  }

  static void finish(Work& work, Wait wait) {
    if (wait == Wait::wait) work.wait();
    if (wait == Wait::deadline) work.wait(std::chrono::minutes(10));
    if (wait == Wait::endless) work.wait(std::chrono::nanoseconds::max());
    while (wait == Wait::test && !work.test()) std::this_thread::yield();
  }

  /// A forked child has none of the parent's comms: using one must be an error and must leave the parent's
  /// comms alone.
  void try_in_child() {
    const pid_t child = fork();
    if (child < 0) return;  // fork failed
    if (child == 0) {
      try {
        comms_[0].barrier();
      } catch (const Error& error) {
        _exit(error.kind() == ErrorKind::invalid ? 0 : 2);
      }
      _exit(1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
      complain_of(fmt::format("a forked child that called a barrier ended with status {} instead of an error", status));
    }
  }

  void complain_of(const std::string& what) {
    const std::lock_guard lock(mutex_);
    if (wrong_.empty()) wrong_ = what;
  }

  void check_source(int number, const Work& work) {
    const Step& s = step(number);
    if (s.kind != Kind::messages || s.packets.size() != 1) return;
    const Packet& p = s.packets[0];
    if (comm(s).rank() != p.to || p.from == p.to || work.source() == p.from) return;
    complain_of(fmt::format("step {}: the message came from rank {}, says source(), but was sent by {}", number,
                            work.source(), p.from));
  }

  Work issue(const Action& action) {
    const Step& s = step(action.step);
    const Options options{.backend = s.backend,
                          .async = action.async,
                          .max_wait = std::chrono::microseconds(action.max_wait),
                          .tag = s.packets.empty() ? 0 : s.packets[0].tag,
                          .algorithm = s.algorithm,
                          .deterministic = s.deterministic};
    switch (s.kind) {
      case Kind::collective:
        return s.tensors > 0 ? fused(action, s, options)
               : rounds(s)   ? rounded(action.step, options)
                             : collective(s, options);
      case Kind::messages: return messages(s, options);
      case Kind::any_source: return any_source(action.step, options);
      case Kind::touch: touch(action.step); break;
      case Kind::drop: comm(s) = Comm(); break;
      default: make_comm(s);
    }
    return {};
  }

  Work collective(const Step& s, const Options& options) {
    const Share& share = s.shares[static_cast<std::size_t>(comm(s).rank())];
    return collective(s, options, memory_.buffer(share.in.at, share.in.count, s.dtype),
                      memory_.buffer(share.out.at, share.out.count, s.dtype));
  }

  /// On memory of its own: what a lossy codec returns is compared with its bound, and the program continues with the
  /// exact result.
  Work rounded(int number, Options options) {
    const Step& s = step(number);
    const int me = comm(s).rank();
    const Share& share = s.shares[static_cast<std::size_t>(me)];
    const auto element = static_cast<std::int64_t>(size_of(s.dtype)), in_bytes = share.in.count * element,
               out_bytes = share.out.count * element;
    const std::byte* const given = memory_.take(share.in.at, in_bytes);
    RankMemory in({given, given + in_bytes}, kind_),
        out(std::vector<std::byte>(static_cast<std::size_t>(out_bytes)), kind_);
    options.async = false;
    options.max_wait = {};
    collective(s, options, in.buffer(0, share.in.count, s.dtype), out.buffer(0, share.out.count, s.dtype));
    const Oracle::Rounded& expected = oracle_.rounded(number);
    const std::vector<std::byte>& exact = expected.exact[static_cast<std::size_t>(me)];
    const std::byte* const found = out.take(0, out_bytes);
    for (std::int64_t at = 0; at < out_bytes; at += element) {
      const double value = value_of(s.dtype, found + at), right = value_of(s.dtype, exact.data() + at);
      if (std::abs(value - right) <= expected.error) continue;  // also false for NaN
      complain_of(
          fmt::format("step {}: element {} is {} after {}; the exact result is {}, and the bound of the error {}",
                      number, at / element, value, s.algorithm.substr(1), right, expected.error));
      break;
    }
    if (out_bytes > 0) std::memcpy(memory_.take(share.out.at, 0), exact.data(), exact.size());
    memory_.put(share.out.at, out_bytes);
    return {};
  }

  Work collective(const Step& s, const Options& options, const Buffer& in, const Buffer& out) {
    Comm& c = comm(s);
    const Share& share = s.shares[static_cast<std::size_t>(c.rank())];
    // Freed when the call returns, like those of most programs.
    const std::unique_ptr<Lists> lists = std::make_unique<Lists>(share);
    const Parts ins{lists->in_counts, lists->in_offsets}, outs{lists->out_counts, lists->out_offsets};
    switch (s.op) {
      case Op::broadcast: return c.broadcast(c.rank() == s.root ? in : out, s.root, options);
      case Op::reduce: return c.reduce(in, out, s.reduce, s.root, options);
      case Op::all_reduce: return c.all_reduce(in, out, s.reduce, options);
      case Op::gather: return c.gather(in, out, s.root, options);
      case Op::all_gather: return c.all_gather(in, out, options);
      case Op::scatter: return c.scatter(in, out, s.root, options);
      case Op::reduce_scatter: return c.reduce_scatter(in, out, s.reduce, options);
      case Op::all_to_all: return c.all_to_all(in, out, options);
      case Op::gatherv: return c.gatherv(in, out, outs, s.root, options);
      case Op::scatterv: return c.scatterv(in, ins, out, s.root, options);
      case Op::all_gatherv: return c.all_gatherv(in, out, outs, options);
      case Op::reduce_scatterv: return c.reduce_scatterv(in, ins, out, s.reduce, options);
      case Op::all_to_allv: return c.all_to_allv(in, ins, out, outs, options);
      default: return c.barrier(options);
    }
  }

  /// Parts of the buffers as tensors of their own: the result is that of the whole.
  Work fused(const Action& action, const Step& s, Options options) {
    Comm& c = comm(s);
    const Share& share = s.shares[static_cast<std::size_t>(c.rank())];
    const bool broadcast = s.op == Op::broadcast;
    const Side& from = broadcast && c.rank() != s.root ? share.out : share.in;
    const Side& to = broadcast ? from : share.out;
    std::vector<ConstBuffer> in;
    std::vector<Buffer> out;
    for (int t = 0; t < s.tensors; ++t) {
      const Side input = tensor_of(from, s.dtype, t, s.tensors), output = tensor_of(to, s.dtype, t, s.tensors);
      in.push_back(memory_.buffer(input.at, input.count, s.dtype));
      out.push_back(memory_.buffer(output.at, output.count, s.dtype));
    }
    if (!s.in_scope) return broadcast ? c.broadcast(out, s.root, options) : c.all_reduce(in, out, s.reduce, options);
    std::vector<Work>& works = of_tensors_[static_cast<std::size_t>(action.step)];
    options.async = true;
    {
      const Fuse scope(c);
      for (std::size_t t = 0; t < in.size(); ++t) {
        works.push_back(broadcast ? c.broadcast(out[t], s.root, options)
                                  : c.all_reduce(in[t], out[t], s.reduce, options));
      }
    }
    if (!action.async) {
      for (Work& work : works) work.wait();
    }
    return works.back();
  }

  Work messages(const Step& s, const Options& options) {
    Comm& c = comm(s);
    std::vector<Message> list;
    for (const Packet& p : s.packets) {
      if (p.from == c.rank()) list.push_back(outgoing(memory_.buffer(p.from_at, p.count, s.dtype), p.to, p.tag));
      if (p.to == c.rank())
        list.push_back(
            incoming(memory_.buffer(p.to_at, p.room, s.dtype), p.any_source ? any_source_rank : p.from, p.tag));
    }
    if (list.size() == 1) {
      const Message& m = list[0];
      return m.is_send ? c.send(m.buffer, m.peer, options) : c.recv(m.buffer, m.peer, options);
    }
    if (list.size() == 2 && list[0].is_send && !list[1].is_send) {
      return c.sendrecv(list[0].buffer, list[0].peer, list[1].buffer, list[1].peer, options);
    }
    return c.batch(list, options);
  }

  /// Receives from any source and sorts the messages by sender; each sender's messages must be in order.
  Work any_source(int number, Options options) {
    const Step& s = step(number);
    Comm& c = comm(s);
    if (c.rank() != s.packets[0].to) return messages(s, options);
    const std::size_t bytes = static_cast<std::size_t>(s.packets[0].count) * size_of(s.dtype);
    std::deque<RankMemory> arrived;
    std::vector<Work> works;
    options.async = true;
    for (std::size_t i = 0; i < s.packets.size(); ++i) {
      arrived.emplace_back(std::vector<std::byte>(std::max<std::size_t>(bytes, 1)), kind_);
      works.push_back(c.recv(arrived[i].buffer(0, s.packets[0].count, s.dtype), any_source_rank, options));
    }
    std::vector<bool> filled(s.packets.size());
    for (std::size_t i = 0; i < works.size(); ++i) {
      works[i].wait();
      std::size_t k = 0;
      while (k < filled.size() && (filled[k] || s.packets[k].from != works[i].source())) ++k;
      if (k == filled.size()) {
        complain_of(fmt::format("step {}: a message came from rank {}, which sent fewer", number, works[i].source()));
        continue;
      }
      filled[k] = true;
      const auto length = static_cast<std::int64_t>(bytes);
      if (bytes > 0) std::memcpy(memory_.take(s.packets[k].to_at, 0), arrived[i].take(0, length), bytes);
      memory_.put(s.packets[k].to_at, length);
    }
    return {};
  }

  void touch(int number) {
    const Step& s = step(number);
    std::byte* const place = memory_.take(s.at, s.bytes);
    if (hash(place, s.bytes) != oracle_.found(number)) {
      complain_of(
          fmt::format("step {}: memory {} to {} was not what it must be by then", number, s.at, s.at + s.bytes));
    }
    write_touch(program_, number, place);
    memory_.put(s.at, s.bytes);
  }

  void make_comm(const Step& s) {
    Comm& parent = comm(s);
    const auto me = static_cast<std::size_t>(parent.rank());
    Comm made;
    const int number = s.colors[me] < 0 ? -1 : s.made[static_cast<std::size_t>(s.colors[me])];
    CommOptions options;
    if (number >= 0) {
      options.rules = program_.comm(number).rules;
      options.fuse = program_.comm(number).fuse;
      options.exact = program_.comm(number).exact;
    }
    if (s.kind == Kind::split) made = parent.split(s.colors[me], s.keys[me], options);
    if (s.kind == Kind::dup) made = parent.dup(options);
    if (s.kind == Kind::subset) {
      std::vector<int> ranks;
      const auto& members = program_.comm(s.made[0]).members;
      for (int member : members) ranks.push_back(rank_in(program_.comm(s.comm), member));
      made = parent.subset(ranks, options);
    }
    if (number >= 0) comms_[static_cast<std::size_t>(number)] = made;
  }

  void compare() {
    const auto& expected = oracle_.memory(rank_);
    if (!memory_.intact()) complain_of("bytes in front of the rank's memory were written, which belong to nobody");
    const auto found = memory_.all();
    const auto [here, there] = std::mismatch(found.begin(), found.end(), expected.begin());
    if (here == found.end()) return;
    const std::int64_t byte = here - found.begin();
    int last = -1;
    for (std::size_t i = 0; i < program_.steps.size(); ++i) {
      const Step& s = program_.steps[i];
      if (s.removed || s.kind == Kind::drop || is_comm_maker(s.kind) || !takes_part(program_, s, rank_)) continue;
      for (const Interval& interval : accesses(program_, s, rank_)) {
        if (interval.write && interval.begin <= byte && byte < interval.end) last = static_cast<int>(i);
      }
    }
    const std::string writer =
        last < 0 ? "which no step writes" : fmt::format("which step {} is the last to write", last);
    complain_of(fmt::format("byte {}, {}, is {:#04x} and must be {:#04x}", byte, writer, static_cast<int>(*here),
                            static_cast<int>(*there)));
  }

  static constexpr int any_source_rank = medley::any_source;
  const Program& program_;
  const Oracle& oracle_;
  const std::function<void(const std::exception&)>& complain_;
  int rank_;
  Memory kind_;
  RankMemory memory_;
  std::vector<Comm> comms_;
  std::vector<Work> works_;
  std::vector<std::vector<Work>> of_tensors_;  ///< by step: those of the tensors of a fuse scope
  std::mutex mutex_;
  std::string wrong_;
  std::exception_ptr failure_;
  std::atomic<bool> failed_{false};
};

}  // namespace

std::string run_program(Context& context, const Program& program, const Oracle& oracle, Memory memory,
                        const std::function<void(const std::exception&)>& complain) {
  return Runner(context, program, oracle, memory, complain).run();
}

}  // namespace medley::soak
