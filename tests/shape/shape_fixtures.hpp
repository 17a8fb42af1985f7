// Models and workloads in one line, for the advisor's tests.
#pragma once

#include <stdexcept>
#include <string>

#include "model/zoo.hpp"
#include "shape/step.hpp"

namespace medley::shape {

inline Model zoo_model(const std::string& name) {
  if (auto model = plan::model_from_zoo(name)) return *model;
  throw std::runtime_error("the zoo has no " + name);
}

struct Given {
  Count micro_batch = 1;
  int tp = 1, pp = 1;
  Count seq = 0;
  bool flash = true;
  Mode mode = Mode::train;
  bool sp = false;
};

inline Workload workload(const Model& model, const Given& given) {
  Workload work;
  work.layout.mode = given.mode;
  work.layout.micro_batch = given.micro_batch;
  work.layout.tp = given.tp;
  work.layout.pp = given.pp;
  work.layout.seq = given.seq;
  work.layout.sp = given.sp;
  work.layout.flags.flash_attention = given.flash;
  check(model, work);
  return work;
}

}  // namespace medley::shape
