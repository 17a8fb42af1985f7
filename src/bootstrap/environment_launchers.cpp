// One reader per launcher, in the order they are tried.
#include <fmt/format.h>

#include <limits>
#include <medley/error.hpp>

#include "bootstrap/ancestor.hpp"
#include "bootstrap/environment_parts.hpp"
#include "bootstrap/proof.hpp"
#include "bootstrap/slurm.hpp"

namespace medley {
namespace {

constexpr int most = std::numeric_limits<int>::max();
// Enough that other programs rarely hold all of them, few enough to try quickly.
constexpr int derived_ports = 8;

// Port from job and step id, below Linux's ephemeral range (32768 and up), which other programs use.
std::uint16_t slurm_port(const std::string& job_and_step) {
  return static_cast<std::uint16_t>(20000 + spread(job_and_step, 12000));
}

// The address of a Slurm step: the first node of the step, which runs rank 0.
void slurm_address(const Variables& variables, Found& found) {
  const auto list = variables.text("SLURM_STEP_NODELIST");
  const auto job = variables.text("SLURM_JOB_ID");
  const auto step = variables.text("SLURM_STEP_ID");
  if (!list || !job || !step) return;
  const auto nodes = expand_node_list(*list);
  found.identity = fmt::format("slurm {}.{}", *job, *step);
  found.place.one_host = nodes.size() == 1;
  found.place.store_host = nodes[0];
  found.place.store_port = slurm_port(found.identity);
  found.place.store_ports = derived_ports;
}

}  // namespace

std::optional<Found> from_medley(const Variables& variables) {
  if (!variables.has("MEDLEY_RANK") && !variables.has("MEDLEY_WORLD_SIZE")) return std::nullopt;
  Found found;
  variables.place("MEDLEY_RANK", "MEDLEY_WORLD_SIZE", found.place);
  found.place.source = Place::Source::medley;
  found.place.local_rank = variables.local_rank({"MEDLEY_LOCAL_RANK"});
  found.place.one_host = false;
  if (found.place.size > 1 && !variables.has("MEDLEY_STORE")) {
    throw Error(ErrorKind::invalid, fmt::format("MEDLEY_WORLD_SIZE={} but MEDLEY_STORE is not set: give every rank "
                                                "rank 0's address, as MEDLEY_STORE=host:port",
                                                found.place.size));
  }
  return found;
}

std::optional<Found> from_torchrun(const Variables& variables, std::string& half_set) {
  if (!variables.has("RANK") && !variables.has("WORLD_SIZE")) return std::nullopt;
  for (const char* name : {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}) {
    if (variables.has(name)) continue;
    half_set =
        fmt::format("{} is set but {} is not: torchrun sets RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT together",
                    variables.has("RANK") ? "RANK" : "WORLD_SIZE", name);
    return std::nullopt;
  }
  Found found;
  variables.place("RANK", "WORLD_SIZE", found.place);
  found.place.source = Place::Source::torchrun;
  found.place.local_rank = variables.local_rank({"LOCAL_RANK"});
  const std::string address = *variables.text("MASTER_ADDR");
  const int port = *variables.number("MASTER_PORT", 1, 65535);
  found.place.one_host = is_loopback(address) || variables.number("LOCAL_WORLD_SIZE", 1, most) == found.place.size;
  found.place.store_host = address;
  // MASTER_PORT itself is taken by torch's own store.
  found.place.store_port = static_cast<std::uint16_t>(port + derived_ports > 65535 ? port - derived_ports : port + 1);
  found.place.store_ports = derived_ports;
  found.identity = fmt::format("torchrun {}:{} {} {}", address, port, variables.first({"TORCHELASTIC_RUN_ID"}),
                               variables.first({"TORCHELASTIC_RESTART_COUNT"}));
  return found;
}

std::optional<Found> from_open_mpi(const Variables& variables) {
  if (!variables.has("OMPI_COMM_WORLD_RANK") && !variables.has("OMPI_COMM_WORLD_SIZE")) return std::nullopt;
  Found found;
  variables.place("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", found.place);
  found.place.source = Place::Source::open_mpi;
  found.place.local_rank = variables.local_rank({"OMPI_COMM_WORLD_LOCAL_RANK"});
  found.place.one_host = variables.number("OMPI_COMM_WORLD_LOCAL_SIZE", 1, most) == found.place.size;
  // mpirun's own address (the HNP URI) does not help: rank 0 need not run on mpirun's host.
  const std::string job = variables.first({"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"});
  if (!job.empty()) found.identity = "openmpi " + job;
  // Open MPI 4 draws 128 random bits for each job; they protect its own transports too.
  found.place.token = variables.first({"OMPI_MCA_orte_precondition_transports"});
  return found;
}

std::optional<Found> from_mpich(const Variables& variables) {
  if (!variables.has("PMI_RANK") && !variables.has("PMI_SIZE")) return std::nullopt;
  Found found;
  variables.place("PMI_RANK", "PMI_SIZE", found.place);
  found.place.source = Place::Source::mpich;
  found.place.local_rank = variables.local_rank({"MPI_LOCALRANKID", "PMI_LOCAL_RANK"});
  found.place.one_host = found.place.size == 1;
  for (const char* name : {"MPI_LOCALNRANKS", "PMI_LOCAL_SIZE"}) {
    if (variables.number(name, 1, most) == found.place.size) found.place.one_host = true;
  }
  // srun --mpi=pmi2 sets PMI_* too, and then Slurm knows the address.
  if (variables.has("SLURM_STEP_NUM_TASKS") && !variables.has("MPI_LOCALNRANKS")) slurm_address(variables, found);
  const std::string job = variables.first({"PMI_JOBID"});
  if (found.identity.empty() && !job.empty()) found.identity = "mpich " + job;
  // Hydra gives its ranks no job id, but on one host they all descend from one proxy.
  if (found.identity.empty()) found.identity = ancestor_identity("hydra_pmi_proxy");
  return found;
}

std::optional<Found> from_slurm(const Variables& variables) {
  // A plain sbatch script has SLURM_PROCID=0 and SLURM_NTASKS=n without any other rank; only a step sets this
  // variable.
  if (!variables.has("SLURM_STEP_NUM_TASKS")) return std::nullopt;
  Found found;
  variables.place("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", found.place);
  found.place.source = Place::Source::slurm;
  found.place.local_rank = variables.local_rank({"SLURM_LOCALID"});
  if (found.place.size > 1) {
    for (const char* name : {"SLURM_STEP_NODELIST", "SLURM_JOB_ID", "SLURM_STEP_ID"}) {
      if (!variables.has(name) && !variables.has("MEDLEY_STORE")) {
        throw Error(ErrorKind::invalid, fmt::format("SLURM_STEP_NUM_TASKS={} but {} is not set: start the ranks with "
                                                    "srun, or set MEDLEY_STORE=host:port",
                                                    found.place.size, name));
      }
    }
    found.place.one_host = false;
    slurm_address(variables, found);
  }
  return found;
}

}  // namespace medley
