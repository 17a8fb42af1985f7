// Runs made from plans of known layouts: the layout is inferred from the communication alone.
#include <gtest/gtest.h>

#include "reconcile/made_run.hpp"
#include "trace/infer_layout.hpp"

namespace medley::reconcile::test {
namespace {

using plan::Framework;

struct Laid {
  const char* layout;
  Framework framework;
  const char* found;
  const char* model = "h=128,a=4,layers=8,vocab=1024,seq=64";
};

TEST(InferLayout, what_was_planned_is_found_again) {
  const Laid jobs[] = {
      {"dp=4,bucket_cap_mb=0.25", Framework::ddp, "dp=4"},
      {"dp=4", Framework::fsdp2, "dp=4,zero=3"},
      {"dp=4,zero=1", Framework::deepspeed, "dp=4,zero=1"},
      {"dp=4,zero=3,persistence=0,prefetch=0", Framework::deepspeed, "dp=4,zero=3"},
      {"dp=2,tp=2,zero=1,global_batch=4", Framework::megatron, "dp=2,tp=2,zero=1"},
      {"dp=2,tp=2,sp=on,global_batch=4", Framework::megatron, "dp=2,tp=2,sp=on"},
      {"tp=4", Framework::megatron, "tp=4"},
      {"dp=2,pp=2,global_batch=8", Framework::megatron, "dp=2,pp=2"},
      {"dp=2,tp=2,pp=2,global_batch=8", Framework::megatron, "dp=2,tp=2,pp=2"},
      {"dp=4,ep=2", Framework::deepspeed, "dp=4,ep=2", "h=128,a=4,layers=8,vocab=1024,seq=64,experts=4,top_k=2"},
  };
  for (const Laid& job : jobs) {
    MadeRun run = made_run(plan_of(job.layout, job.framework, job.model), 3);
    for (MadeRank& rank : run.ranks)  // names must not reveal it
      for (MadeStep& step : rank.steps)
        for (MadeOperation& op : step) op.group = "g", op.scope = "";
    const trace::InferredLayout found = trace::infer_layout(trace_of(run));
    std::string why;
    for (const std::string& line : found.evidence) why += line + "\n";
    EXPECT_EQ(found.text(), job.found) << job.layout << "\n" << why;
    EXPECT_TRUE(found.complete) << job.layout;
    EXPECT_FALSE(found.evidence.empty());
  }
}

/// Two ranks that send to each other and reduce together are no pipeline of two data-parallel stages, which has four.
TEST(InferLayout, parts_that_make_more_ranks_than_there_are_are_no_layout) {
  MadeRun run = made_run(plan_of("dp=2,bucket_cap_mb=0.25", Framework::ddp, "h=128,a=4,layers=8,vocab=1024,seq=64"), 3);
  for (MadeRank& rank : run.ranks) {
    for (MadeStep& step : rank.steps) {
      MadeOperation message = step.front();
      message.event.op = rank.rank == 0 ? Op::send : Op::recv;
      message.event.peer = 1 - rank.rank;
      message.event.matched = false;
      step.push_back(message);
    }
  }
  const trace::InferredLayout found = trace::infer_layout(trace_of(run));
  EXPECT_EQ(found.evidence.size(), 2u);
  EXPECT_FALSE(found.complete);
  EXPECT_EQ(found.text(), "");
}

}  // namespace
}  // namespace medley::reconcile::test
