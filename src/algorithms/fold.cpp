#include "algorithms/fold.hpp"

namespace medley::algorithms {

Task fold_in(Job& job, const Fold& fold, const Combiner& combiner, std::byte* partial, std::int64_t count) {
  if (!fold.paired(job.rank)) co_return;
  const std::size_t bytes = job.bytes(count);  // inputs travel in the user's type: nothing was rounded yet
  if (!fold.survives(job.rank)) {
    job.messages.send(job.in(), bytes, job.rank + 1);
    co_await job.messages.all();
    co_return;
  }
  const Scratch other(bytes);
  job.messages.recv(other.data(), bytes, job.rank - 1);
  co_await job.messages.all();
  combiner.add(partial, partial, other.data(), count);
}

Task fold_out(Job& job, const Fold& fold, std::byte* out, std::size_t bytes) {
  if (!fold.paired(job.rank)) co_return;
  if (fold.survives(job.rank)) {
    job.messages.send(out, bytes, job.rank - 1);
  } else {
    job.messages.recv(out, bytes, job.rank + 1);
  }
  co_await job.messages.all();
}

}  // namespace medley::algorithms
