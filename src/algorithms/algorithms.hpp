// Every collective over send and recv, one coroutine each; the file of the same name implements it and states its error
// bound. All of them work for two or more ranks, in place and out of place, and combine in a
// fixed order.
#pragma once

#include "algorithms/job.hpp"

namespace medley::algorithms {

Task ring_all_reduce(Job& job);
Task ring_all_gather(Job& job);      ///< also all_gatherv
Task ring_reduce_scatter(Job& job);  ///< also reduce_scatterv

Task recursive_doubling_all_reduce(Job& job);
Task recursive_doubling_all_gather(Job& job);

Task recursive_halving_reduce_scatter(Job& job);  ///< also reduce_scatterv

Task rabenseifner_all_reduce(Job& job);
Task rabenseifner_reduce(Job& job);

Task bruck_all_gather(Job& job);
Task bruck_all_to_all(Job& job);

Task pairwise_all_to_all(Job& job);      ///< also all_to_allv
Task pairwise_reduce_scatter(Job& job);  ///< also reduce_scatterv
Task pairwise_all_reduce(Job& job);

Task gather_combine_all_reduce(Job& job);
Task gather_combine_reduce(Job& job);

Task binomial_broadcast(Job& job);
Task binomial_reduce(Job& job);
Task binomial_gather(Job& job);
Task binomial_scatter(Job& job);
Task knomial_broadcast(Job& job);
Task knomial_reduce(Job& job);
Task knomial_gather(Job& job);
Task knomial_scatter(Job& job);

Task scatter_all_gather_broadcast(Job& job);

Task dissemination_barrier(Job& job);

Task linear_gather(Job& job);      ///< also gatherv
Task linear_scatter(Job& job);     ///< also scatterv
Task linear_all_gather(Job& job);  ///< also all_gatherv
Task linear_all_to_all(Job& job);  ///< also all_to_allv

/// Any operation of a comm with one rank: at most a copy.
void do_alone(const Call& call);

}  // namespace medley::algorithms
