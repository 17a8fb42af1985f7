// Compares AICB workloads (Alibaba's generated operation lists, csv) with a plan and gives the cause of every
// difference. AICB mocks the frameworks; where it differs from their sources, its own formulas show why. Used
// by `plan --against`.
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
  Count group_size = 0;  ///< 0 if the list has none
  Count bytes = 0;
  std::string stage;  ///< AICB's name of the place: "forward.MegatronRowLinear"
};

/// The rows of one training step (the first after setup) of pipeline stage `stage`.
struct AicbList {
  std::vector<AicbRow> rows;
  Count setup_rows = 0;
  int stages = 1;    ///< sections of the file, one per pipeline stage
  bool ends = true;  ///< the row that ends the step is present
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
  std::vector<std::string> agree;  ///< purposes with equal operation, group, bytes and count
  std::vector<Difference> differ;
  std::vector<std::string> notes;  ///< conventions, such as group sizes that AICB omits
  bool explained() const;
};

Comparison compare_with_aicb(const Model& model, const Layout& layout, Framework framework, Count rank,
                             const Schedule& schedule, const AicbList& list);

/// What each version of AICB's generator would write for `purpose`, and the cause of the difference.
struct AicbVersion {
  Side rows;
  std::string cause;
};
std::vector<AicbVersion> aicb_versions(const Model& model, const Layout& layout, Framework framework, Count rank,
                                       const std::string& purpose);

std::string text_of(const Side& side);

}  // namespace medley::plan
