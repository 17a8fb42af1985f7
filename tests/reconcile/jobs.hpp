// Jobs of every framework whose runs the tests of reconcile damage.
#pragma once
#include "reconcile/made_run.hpp"

namespace medley::reconcile::test {

constexpr const char* moe_model = "h=128,a=4,layers=4,vocab=1024,seq=64,experts=4,top_k=2";

struct Job {
  const char* layout;
  plan::Framework framework;
  const char* model = "h=128,a=4,layers=4,vocab=1024,seq=64";
};
constexpr Job jobs[] = {
    {"dp=4,bucket_cap_mb=0.25,dtype=f32", plan::Framework::ddp},
    {"dp=4", plan::Framework::fsdp2},
    {"dp=2,tp=2,sp=on,zero=1,global_batch=8", plan::Framework::megatron},
    {"dp=2,tp=2,global_batch=8", plan::Framework::megatron},
    {"pp=2,tp=2,global_batch=4", plan::Framework::megatron},
    {"dp=4,zero=1", plan::Framework::deepspeed},
    {"dp=4,zero=2,overlap_comm=on", plan::Framework::deepspeed},
    {"dp=4,zero=3", plan::Framework::deepspeed},
    {"dp=2,tp=2,zero=1", plan::Framework::neox},
    {"dp=2,tp=2", plan::Framework::nanotron},
    {"dp=4,ep=2", plan::Framework::deepspeed, moe_model},
};

}  // namespace medley::reconcile::test
