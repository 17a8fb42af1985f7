// Replaces src/cost/ in a fuzzer of readers: a schedule may name a machine, whose file would be read (from
// this computer) and whose kernels would be priced; neither is the fuzzer's subject.
#include <medley/error.hpp>

#include "cost/cost.hpp"

namespace medley::cost {

Machine find_machine(const std::string& name) {
  throw Error(ErrorKind::invalid, "a fuzzer knows no machine \"" + name + "\"");
}

Step::Step(const Model&, const Layout& layout, Framework framework, Count) : layout_(layout), framework_(framework) {}

std::vector<double> Step::entry_us(const Machine&) const { return {}; }

}  // namespace medley::cost
