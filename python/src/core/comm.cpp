#include "comm.hpp"

#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

namespace nb = nanobind;
using namespace nb::literals;

namespace medley::python {
namespace {

using Counts = std::vector<std::int64_t>;

ReduceOp reduction(const std::string& text) {
  if (const auto op = parse_reduce_op(text)) return *op;
  throw Error(ErrorKind::invalid,
              fmt::format("\"{}\" is not a reduction; there are sum, avg, product, min, max, band, bor, "
                          "bxor",
                          text));
}

/// Issues without the GIL, then waits or returns the Work. `issue` returns the Work of an async operation.
template <typename Issue>
nb::object carry_out(PyComm& self, const CallOptions& options, std::vector<Array> arrays, Issue&& issue) {
  Work work;
  {
    const nb::gil_scoped_release released;
    work = issue(options.options());
  }
  if (options.async_op) {
    if (!work.complete()) self.job->keep({work, std::move(arrays), options.feedback});
    return nb::cast(WorkHandle{std::move(work), self.job});
  }
  try {
    wait(work, forever);
  } catch (nb::python_error&) {
    self.job->keep({work, std::move(arrays), options.feedback});  // interrupted: the operation continues and still uses the arrays
    throw;
  }
  const int source = work.source();
  return source >= 0 ? nb::cast(source) : nb::none();
}

using O = const CallOptions&;

nb::object send(PyComm& c, O o, nb::handle data, int to) {
  Array in = readable(data, "send");
  const ConstBuffer buffer = in.buffer;
  return carry_out(c, o, {std::move(in)}, [&](const Options& x) { return c.comm.send(buffer, to, x); });
}

nb::object recv(PyComm& c, O o, nb::handle data, int from) {
  Array out = writable(data, "recv");
  const Buffer buffer = out.buffer;
  return carry_out(c, o, {std::move(out)}, [&](const Options& x) { return c.comm.recv(buffer, from, x); });
}

nb::object sendrecv(PyComm& c, O o, nb::handle outgoing, int to, nb::handle incoming, int from) {
  Array in = readable(outgoing, "sendrecv's outgoing array"),
        out = writable(incoming, "sendrecv's incoming array");
  const Buffer a = in.buffer, b = out.buffer;
  return carry_out(c, o, {std::move(in), std::move(out)},
                   [&](const Options& x) { return c.comm.sendrecv(a, to, b, from, x); });
}

nb::object broadcast(PyComm& c, O o, nb::handle data, int root) {
  Array array = c.comm.rank() == root ? readable(data, "broadcast") : writable(data, "broadcast");
  const Buffer buffer = array.buffer;
  return carry_out(c, o, {std::move(array)},
                   [&](const Options& x) { return c.comm.broadcast(buffer, root, x); });
}

nb::object reduce(PyComm& c, O o, nb::handle input, nb::handle output, const std::string& op, int root) {
  const bool writes = c.comm.rank() == root;
  Array in =
      writes && input.is(output) ? writable(output, "reduce's output") : readable(input, "reduce's input");
  Array out = writes && !input.is(output) ? writable(output, "reduce's output") : in;
  const Buffer a = in.buffer, b = out.buffer;
  const ReduceOp r = reduction(op);
  return carry_out(c, o, {std::move(in), std::move(out)},
                   [&](const Options& x) { return c.comm.reduce(a, b, r, root, x); });
}

nb::object all_reduce(PyComm& c, O o, nb::handle input, nb::handle output, const std::string& op) {
  Array out = writable(output, "all_reduce's output");
  Array in = input.is(output) ? out : readable(input, "all_reduce's input");
  const Buffer a = in.buffer, b = out.buffer;
  const ReduceOp r = reduction(op);
  return carry_out(c, o, {std::move(in), std::move(out)},
                   [&](const Options& x) { return c.comm.all_reduce(a, b, r, x); });
}

std::vector<ConstBuffer> inputs(const std::vector<Array>& arrays) {
  std::vector<ConstBuffer> buffers;
  for (const Array& array : arrays) buffers.emplace_back(array.buffer);
  return buffers;
}

std::vector<Buffer> outputs(const std::vector<Array>& arrays) {
  std::vector<Buffer> buffers;
  for (const Array& array : arrays) buffers.push_back(array.buffer);
  return buffers;
}

/// Collectives on lists of arrays: `start` gets the inputs and the outputs.
template <typename Start>
nb::object on_lists(PyComm& c, O o, const std::vector<nb::object>& tensors, const std::vector<nb::object>& outs,
                    const char* name, Start&& start) {
  std::vector<Array> in, out;
  const bool in_place = tensors.size() == outs.size() &&
                        std::equal(tensors.begin(), tensors.end(), outs.begin(), [](auto& a, auto& b) { return a.is(b); });
  for (const nb::object& array : outs) out.push_back(writable(array, name));
  if (in_place) {
    in = out;
  } else {
    for (const nb::object& array : tensors) in.push_back(readable(array, name));
  }
  const auto ins = inputs(in);
  const auto to = outputs(out);
  in.insert(in.end(), out.begin(), out.end());
  return carry_out(c, o, std::move(in), [&](const Options& x) { return start(ins, to, x); });
}
using List = const std::vector<nb::object>&;

nb::object all_reduce_list(PyComm& c, O o, List tensors, List outs, const std::string& op) {
  const ReduceOp r = reduction(op);
  return on_lists(c, o, tensors, outs, "all_reduce", [&](const auto& in, const auto& out, const Options& x) {
    return c.comm.all_reduce(in, out, r, x);
  });
}

nb::object broadcast_list(PyComm& c, O o, List tensors, int root) {
  return on_lists(c, o, tensors, tensors, "broadcast", [&](const auto&, const auto& out, const Options& x) {
    return c.comm.broadcast(out, root, x);
  });
}

nb::object all_gather_list(PyComm& c, O o, List tensors, List outs) {
  return on_lists(c, o, tensors, outs, "all_gather", [&](const auto& in, const auto& out, const Options& x) {
    return c.comm.all_gather(in, out, x);
  });
}

nb::object reduce_scatter_list(PyComm& c, O o, List tensors, List outs, const std::string& op) {
  const ReduceOp r = reduction(op);
  return on_lists(c, o, tensors, outs, "reduce_scatter", [&](const auto& in, const auto& out, const Options& x) {
    return c.comm.reduce_scatter(in, out, r, x);
  });
}

nb::object gather(PyComm& c, O o, nb::handle input, nb::handle output, int root) {
  Array in = readable(input, "gather's input");
  Array out = writable_or_none(output, "gather's output", in);
  const Buffer a = in.buffer, b = out.buffer;
  return carry_out(c, o, {std::move(in), std::move(out)},
                   [&](const Options& x) { return c.comm.gather(a, b, root, x); });
}

nb::object scatter(PyComm& c, O o, nb::handle input, nb::handle output, int root) {
  Array out = writable(output, "scatter's output");
  Array in = readable_or_none(input, "scatter's input", out);
  const Buffer a = in.buffer, b = out.buffer;
  return carry_out(c, o, {std::move(in), std::move(out)},
                   [&](const Options& x) { return c.comm.scatter(a, b, root, x); });
}

/// Operations with (input, output).
template <Work (Comm::*operation)(const ConstBuffer&, const Buffer&, const Options&)>
nb::object two_sided(PyComm& c, O o, nb::handle input, nb::handle output) {
  Array in = readable(input, "the input"), out = writable(output, "the output");
  const Buffer a = in.buffer, b = out.buffer;
  return carry_out(c, o, {std::move(in), std::move(out)},
                   [&](const Options& x) { return (c.comm.*operation)(a, b, x); });
}

nb::object reduce_scatter(PyComm& c, O o, nb::handle input, nb::handle output, const std::string& op) {
  Array in = readable(input, "reduce_scatter's input"), out = writable(output, "reduce_scatter's output");
  const Buffer a = in.buffer, b = out.buffer;
  const ReduceOp r = reduction(op);
  return carry_out(c, o, {std::move(in), std::move(out)},
                   [&](const Options& x) { return c.comm.reduce_scatter(a, b, r, x); });
}

nb::object barrier(PyComm& c, O o) {
  return carry_out(c, o, {}, [&](const Options& x) { return c.comm.barrier(x); });
}

nb::object gatherv(PyComm& c, O o, nb::handle input, nb::handle output, const Counts& counts,
                   const Counts& offsets, int root) {
  Array in = readable(input, "gatherv's input");
  Array out = writable_or_none(output, "gatherv's output", in);
  const Buffer a = in.buffer, b = out.buffer;
  return carry_out(c, o, {std::move(in), std::move(out)}, [&](const Options& x) {
    return c.comm.gatherv(a, b, {counts, offsets}, root, x);
  });
}

nb::object scatterv(PyComm& c, O o, nb::handle input, const Counts& counts, const Counts& offsets,
                    nb::handle output, int root) {
  Array out = writable(output, "scatterv's output");
  Array in = readable_or_none(input, "scatterv's input", out);
  const Buffer a = in.buffer, b = out.buffer;
  return carry_out(c, o, {std::move(in), std::move(out)}, [&](const Options& x) {
    return c.comm.scatterv(a, {counts, offsets}, b, root, x);
  });
}

nb::object all_gatherv(PyComm& c, O o, nb::handle input, nb::handle output, const Counts& counts,
                       const Counts& offsets) {
  Array in = readable(input, "all_gatherv's input"), out = writable(output, "all_gatherv's output");
  const Buffer a = in.buffer, b = out.buffer;
  return carry_out(c, o, {std::move(in), std::move(out)}, [&](const Options& x) {
    return c.comm.all_gatherv(a, b, {counts, offsets}, x);
  });
}

nb::object reduce_scatterv(PyComm& c, O o, nb::handle input, const Counts& counts, const Counts& offsets,
                           nb::handle output, const std::string& op) {
  Array in = readable(input, "reduce_scatterv's input"), out = writable(output, "reduce_scatterv's output");
  const Buffer a = in.buffer, b = out.buffer;
  const ReduceOp r = reduction(op);
  return carry_out(c, o, {std::move(in), std::move(out)}, [&](const Options& x) {
    return c.comm.reduce_scatterv(a, {counts, offsets}, b, r, x);
  });
}

nb::object all_to_allv(PyComm& c, O o, nb::handle input, const Counts& in_counts, const Counts& in_offsets,
                       nb::handle output, const Counts& out_counts, const Counts& out_offsets) {
  Array in = readable(input, "all_to_allv's input"), out = writable(output, "all_to_allv's output");
  const Buffer a = in.buffer, b = out.buffer;
  return carry_out(c, o, {std::move(in), std::move(out)}, [&](const Options& x) {
    return c.comm.all_to_allv(a, {in_counts, in_offsets}, b, {out_counts, out_offsets}, x);
  });
}

nb::object batch(PyComm& c, O o, const std::vector<nb::tuple>& list) {
  std::vector<Array> arrays;
  std::vector<Message> messages;
  for (const nb::tuple& entry : list) {  // (is_send, array, peer, tag)
    const bool is_send = nb::cast<bool>(entry[0]);
    arrays.push_back(is_send ? readable(entry[1], "an outgoing message")
                             : writable(entry[1], "an incoming message"));
    messages.push_back({is_send, arrays.back().buffer, nb::cast<int>(entry[2]), nb::cast<int>(entry[3])});
  }
  return carry_out(c, o, std::move(arrays), [&](const Options& x) { return c.comm.batch(messages, x); });
}

/// A new comm of the same job, made without the GIL; None for a non-member.
template <typename Make>
std::optional<PyComm> made(const PyComm& self, Make&& make) {
  Comm comm;
  {
    const nb::gil_scoped_release released;
    comm = make();
  }
  if (!comm) return std::nullopt;
  return PyComm{self.job, comm};
}

}  // namespace

Options CallOptions::options() const {
  return {.backend = backend == "auto" ? std::string_view{} : std::string_view(backend),
          .async = true,
          .deadline = std::chrono::nanoseconds(static_cast<std::int64_t>(deadline * 1e9)),
          .tag = tag,
          .algorithm = algorithm,
          .deterministic = deterministic,
          .stream = reinterpret_cast<void*>(stream),
          .compress = compress,
          .feedback = feedback.get()};
}

void bind_comm(nb::module_& module) {
  nb::class_<ErrorFeedback>(module, "ErrorFeedback",
                            "What lossy compression left out of one tensor so far, to be sent with its next "
                            "values: pass it to every all_reduce, reduce or reduce_scatter of that tensor.")
      .def(nb::init<>())
      .def("__len__", [](const ErrorFeedback& self) { return self.count(); })
      .def("reset", &ErrorFeedback::reset, "Forgets everything.");
  nb::class_<CallOptions>(module, "CallOptions", "What an operation is asked for beside its arrays.")
      .def(
          "__init__",
          [](CallOptions* self, std::string backend, bool async_op, std::optional<double> deadline,
             std::string algorithm, bool deterministic, std::uintptr_t stream, int tag, std::string compress,
             std::shared_ptr<ErrorFeedback> feedback) {
            new (self) CallOptions{std::move(backend),
                                   async_op,
                                   deadline.value_or(0),
                                   std::move(algorithm),
                                   deterministic,
                                   stream,
                                   tag,
                                   std::move(compress),
                                   std::move(feedback)};
          },
          "backend"_a, "async_op"_a = false, "deadline"_a = nb::none(), "algorithm"_a = "",
          "deterministic"_a = false, "stream"_a = 0, "tag"_a = 0, "compress"_a = "", "feedback"_a = nb::none());

  nb::class_<PyComm>(module, "Comm", "An ordered set of ranks with its own sequence of operations; a group.")
      .def_prop_ro(
          "rank", [](const PyComm& c) { return c.comm.rank(); }, "This rank's number in the group.")
      .def_prop_ro(
          "size", [](const PyComm& c) { return c.comm.size(); }, "How many ranks the group has.")
      .def_prop_ro(
          "name", [](const PyComm& c) { return c.comm.name(); }, "The name that errors give it.")
      .def("__repr__",
           [](const PyComm& c) {
             return fmt::format("<medley.Comm {}: rank {} of {}>", c.comm.name(), c.comm.rank(),
                                c.comm.size());
           })
      .def(
          "split",
          [](PyComm& c, int color, int key, std::optional<bool> exact) {
            return made(c, [&] { return c.comm.split(color, key, {.exact = exact}); });
          },
          "color"_a, "key"_a = 0, "exact"_a = nb::none(),
          "Makes a group of the ranks that give one color, ordered by (key, rank); None for a negative "
          "color. "
          "Called by every rank of this group.")
      .def(
          "subset",
          [](PyComm& c, const std::vector<int>& ranks, std::optional<bool> exact) {
            return made(c, [&] { return c.comm.subset(ranks, {.exact = exact}); });
          },
          "ranks"_a, "exact"_a = nb::none(),
          "Makes a group of the listed ranks, in that order; None for the others. Called by every rank.")
      .def(
          "dup",
          [](PyComm& c, bool fuse, std::optional<bool> exact) {
            return made(c, [&] { return c.comm.dup({.fuse = fuse, .exact = exact}); });
          },
          "fuse"_a = false, "exact"_a = nb::none(),
          "Makes a group of the same ranks with its own sequence of operations. fuse: small async collectives "
          "travel together without being asked to. exact: every receive has exactly the size of its message.")
      .def(
          "abort", [](PyComm& c) { c.comm.abort(); }, nb::call_guard<nb::gil_scoped_release>(),
          "Makes every pending and later operation of this group fail, on all its ranks.")
      .def("send", &send, "options"_a, "tensor"_a.none(), "dst"_a)
      .def("recv", &recv, "options"_a, "tensor"_a.none(), "src"_a)
      .def("sendrecv", &sendrecv, "options"_a, "outgoing"_a.none(), "dst"_a, "incoming"_a.none(), "src"_a)
      .def("batch", &batch, "options"_a, "messages"_a)
      .def("broadcast", &broadcast, "options"_a, "tensor"_a.none(), "root"_a)
      .def("reduce", &reduce, "options"_a, "tensor"_a.none(), "out"_a.none(), "op"_a, "root"_a)
      .def("all_reduce", &all_reduce, "options"_a, "tensor"_a.none(), "out"_a.none(), "op"_a)
      .def("gather", &gather, "options"_a, "tensor"_a.none(), "out"_a.none(), "root"_a)
      .def("scatter", &scatter, "options"_a, "tensor"_a.none(), "out"_a.none(), "root"_a)
      .def("all_gather", &two_sided<&Comm::all_gather>, "options"_a, "tensor"_a.none(), "out"_a.none())
      .def("all_to_all", &two_sided<&Comm::all_to_all>, "options"_a, "tensor"_a.none(), "out"_a.none())
      .def("reduce_scatter", &reduce_scatter, "options"_a, "tensor"_a.none(), "out"_a.none(), "op"_a)
      .def("all_reduce_list", &all_reduce_list, "options"_a, "tensors"_a, "outs"_a, "op"_a)
      .def("broadcast_list", &broadcast_list, "options"_a, "tensors"_a, "root"_a)
      .def("all_gather_list", &all_gather_list, "options"_a, "tensors"_a, "outs"_a)
      .def("reduce_scatter_list", &reduce_scatter_list, "options"_a, "tensors"_a, "outs"_a, "op"_a)
      .def("barrier", &barrier, "options"_a)
      .def("gatherv", &gatherv, "options"_a, "tensor"_a.none(), "out"_a.none(), "counts"_a, "offsets"_a,
           "root"_a)
      .def("scatterv", &scatterv, "options"_a, "tensor"_a.none(), "counts"_a, "offsets"_a, "out"_a.none(),
           "root"_a)
      .def("all_gatherv", &all_gatherv, "options"_a, "tensor"_a.none(), "out"_a.none(), "counts"_a,
           "offsets"_a)
      .def("reduce_scatterv", &reduce_scatterv, "options"_a, "tensor"_a.none(), "counts"_a, "offsets"_a,
           "out"_a.none(), "op"_a)
      .def("all_to_allv", &all_to_allv, "options"_a, "tensor"_a.none(), "in_counts"_a, "in_offsets"_a,
           "out"_a.none(), "out_counts"_a, "out_offsets"_a);
}

}  // namespace medley::python
