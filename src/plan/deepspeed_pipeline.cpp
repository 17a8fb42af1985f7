// The order of DeepSpeed's pipeline engine: even and odd steps alternate between forward and backward on each
// stage.
#include "plan/deepspeed_engine.hpp"

namespace medley::plan {
namespace {

struct StepWork {
  Count micro_batch;
  bool forward;
};

StepWork work_of(Count step, int stage, int stages) {
  const bool even_step = step % 2 == 0, even_stage = stage % 2 == 0;
  const auto floor_half = [](Count x) { return x >= 0 ? x / 2 : -((1 - x) / 2); };
  if (even_step && even_stage) return {floor_half(step) - stage / 2, true};
  if (!even_step && !even_stage) return {floor_half(step - 1) - stage / 2, true};
  if (even_step && !even_stage) return {floor_half(step) - stages + (stage + 1) / 2, false};
  return {floor_half(step - 1) - stages + 1 + stage / 2, false};
}

}  // namespace

std::vector<Command> train_schedule(int stage, int stages, Count m) {
  std::vector<Command> commands;
  const auto valid = [&](Count i) { return i >= 0 && i < m; };
  const bool has_previous = stage > 0, has_next = stage < stages - 1;
  Count previous = -1;
  for (Count step = 0; step < 2 * (m + stages - 1); ++step) {
    const StepWork work = work_of(step, stage, stages);
    if (work.forward) {
      if (valid(previous) && has_previous) commands.push_back({Instruction::send_grad, previous});
      if (valid(work.micro_batch) && has_previous) commands.push_back({Instruction::recv_activation, work.micro_batch});
    } else {
      if (valid(work.micro_batch) && has_next) commands.push_back({Instruction::recv_grad, work.micro_batch});
      if (valid(previous) && has_next) commands.push_back({Instruction::send_activation, previous});
    }
    if (valid(work.micro_batch))
      commands.push_back({work.forward ? Instruction::forward : Instruction::backward, work.micro_batch});
    previous = work.micro_batch;
  }
  return commands;
}

}  // namespace medley::plan
