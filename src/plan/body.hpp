// The passes of a stage as blocks: one forward and one backward per chunk, made once and shared by all
// micro-batches. Frameworks hook their parameter gathers and gradient reductions into it.
#pragma once

#include <map>
#include <utility>

#include "plan/layer.hpp"
#include "plan/pipeline.hpp"

namespace medley::plan {

/// What a framework adds to a pass; every function may be empty. Layer −1 is the embedding, layers() the
/// head.
struct BodyHooks {
  std::function<std::vector<Entry>(int chunk, bool forward)> at_start, at_end;
  std::function<std::vector<Entry>(Count layer, bool forward)> before,
      after;  ///< around each layer, embedding and head
};

class Body {
 public:
  Body(const View& view, Schedule& schedule, const TensorRules& rules);
  /// The block of a pass of `chunk`; `variant` distinguishes passes with different hooks (e.g. the last
  /// micro-batch).
  Schedule::BlockId block(int chunk, bool forward, int variant, const BodyHooks& hooks);

 private:
  Schedule::BlockId make(const Chunk& chunk, int index, bool forward, const BodyHooks& hooks);
  Schedule::BlockId layer_block(LayerKind kind, bool forward);

  const View& view_;
  Schedule& schedule_;
  LayerWriter writer_;
  std::map<std::pair<LayerKind, bool>, Schedule::BlockId> layers_;
  std::map<std::pair<int, int>, Schedule::BlockId> made_;
};

}  // namespace medley::plan
