// AICB workloads (Alibaba's generated operation lists, csv) beside a plan: every difference with its cause.
// AICB mocks the frameworks; where it departs from their sources its own formulas tell why. Used by `plan
// --against`.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "plan/framework.hpp"

namespace medley::plan {

struct AicbRow {
  Op op = Op::all_reduce;
  std::string group;     ///< our name: dp, tp, pp, ep, …
  Count group_size = 0;  ///< 0 where the list has none
  Count bytes = 0;
  std::string stage;  ///< AICB's word for where it happens: "forward.MegatronRowLinear"
};

/// The rows of one training step (the first after setup) of the pipeline stage that `stage` asks for.
struct AicbList {
  std::vector<AicbRow> rows;
  Count setup_rows = 0;
  int stages = 1;    ///< sections of the file, one per pipeline stage
  bool ends = true;  ///< the row that closes the step is there
};
AicbList read_aicb(const std::string& text, const std::string& source, int stage);

/// Operations of one purpose: (op, group, bytes) → count.
using Side = std::map<std::tuple<Op, std::string, Count>, Count>;

struct Difference {
  std::string purpose;
  Side ours, theirs;
  std::string cause;  ///< empty: not explained
};
struct Comparison {
  std::vector<std::string> agree;  ///< purposes that are the same in operation, group, bytes and count
  std::vector<Difference> differ;
  std::vector<std::string> notes;  ///< conventions, such as group sizes that AICB leaves out
  bool explained() const;
};

Comparison compare_with_aicb(const Model& model, const Layout& layout, Framework framework, Count rank,
                             const Schedule& schedule, const AicbList& list);

/// What AICB's generator would write for `purpose`, in each of its versions, with the cause of the
/// difference.
struct AicbVersion {
  Side rows;
  std::string cause;
};
std::vector<AicbVersion> aicb_versions(const Model& model, const Layout& layout, Framework framework,
                                       Count rank, const std::string& purpose);

std::string text_of(const Side& side);

}  // namespace medley::plan
