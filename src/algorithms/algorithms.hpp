// Every collective over send and recv, one coroutine each; the file of the same name has it, with its error
// bound. All of them work for any number of ranks from two on, in place and out of place, and combine in a
// fixed order.
#pragma once

#include "algorithms/job.hpp"

namespace medley::algorithms {

core::Task ring_all_reduce(Job& job);
core::Task ring_all_gather(Job& job);      ///< also all_gatherv
core::Task ring_reduce_scatter(Job& job);  ///< also reduce_scatterv

core::Task recursive_doubling_all_reduce(Job& job);
core::Task recursive_doubling_all_gather(Job& job);

core::Task recursive_halving_reduce_scatter(Job& job);  ///< also reduce_scatterv

core::Task rabenseifner_all_reduce(Job& job);
core::Task rabenseifner_reduce(Job& job);

core::Task bruck_all_gather(Job& job);
core::Task bruck_all_to_all(Job& job);

core::Task pairwise_all_to_all(Job& job);      ///< also all_to_allv
core::Task pairwise_reduce_scatter(Job& job);  ///< also reduce_scatterv
core::Task pairwise_all_reduce(Job& job);

core::Task gather_combine_all_reduce(Job& job);
core::Task gather_combine_reduce(Job& job);

core::Task binomial_broadcast(Job& job);
core::Task binomial_reduce(Job& job);
core::Task binomial_gather(Job& job);
core::Task binomial_scatter(Job& job);
core::Task knomial_broadcast(Job& job);
core::Task knomial_reduce(Job& job);
core::Task knomial_gather(Job& job);
core::Task knomial_scatter(Job& job);

core::Task scatter_all_gather_broadcast(Job& job);

core::Task dissemination_barrier(Job& job);

core::Task linear_gather(Job& job);      ///< also gatherv
core::Task linear_scatter(Job& job);     ///< also scatterv
core::Task linear_all_gather(Job& job);  ///< also all_gatherv
core::Task linear_all_to_all(Job& job);  ///< also all_to_allv

/// Any operation of a comm with one rank: at most a copy.
void do_alone(const Call& call);

}  // namespace medley::algorithms
