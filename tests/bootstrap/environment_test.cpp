#include "bootstrap/environment.hpp"
#include "bootstrap/unknown_variables.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <medley/error.hpp>

namespace medley {
namespace {

using testing::HasSubstr;
using testing::StartsWith;
using Variables = std::map<std::string, std::string>;

std::optional<Place> place_in(Variables variables) {
  return find_place([variables](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  });
}

std::string complaint_about(const Variables& variables) {
  try {
    place_in(variables);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::invalid);
    return error.what();
  }
  return "no complaint";
}

Variables with(Variables variables, const Variables& more) {
  for (const auto& [name, value] : more) variables[name] = value;
  return variables;
}

const Variables medley_set = {{"MEDLEY_RANK", "2"},
                              {"MEDLEY_WORLD_SIZE", "4"},
                              {"MEDLEY_LOCAL_RANK", "2"},
                              {"MEDLEY_STORE", "127.0.0.1:4000"},
                              {"MEDLEY_TOKEN", "secret"}};
const Variables torch_set = {{"RANK", "3"},
                             {"WORLD_SIZE", "8"},
                             {"LOCAL_RANK", "1"},
                             {"LOCAL_WORLD_SIZE", "2"},
                             {"MASTER_ADDR", "node1"},
                             {"MASTER_PORT", "29500"}};
const Variables open_mpi_set = {{"OMPI_COMM_WORLD_RANK", "1"},
                                {"OMPI_COMM_WORLD_SIZE", "2"},
                                {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                                {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                                {"PMIX_NAMESPACE", "1290076161"},
                                {"OMPI_MCA_orte_precondition_transports", "e9dd491285bdbd3e-0629463eb7dc4b47"}};
const Variables mpich_set = {{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "2"}};
const Variables slurm_set = {{"SLURM_PROCID", "5"},
                             {"SLURM_STEP_NUM_TASKS", "6"},
                             {"SLURM_LOCALID", "1"},
                             {"SLURM_JOB_ID", "4711"},
                             {"SLURM_STEP_ID", "0"},
                             {"SLURM_NTASKS", "6"},
                             {"SLURM_STEP_NODELIST", "gpu[07-09]"}};

TEST(Environment, WithoutALauncherThereIsNoPlaceAndTheDefaultIsOneRank) {
  EXPECT_FALSE(place_in({}));
  const Place place = place_in({}).value_or(Place{});
  EXPECT_EQ(place.rank, 0);
  EXPECT_EQ(place.size, 1);
}

TEST(Environment, MedleysOwnVariables) {
  const Place place = place_in(medley_set).value();
  EXPECT_EQ(place.source, Place::Source::medley);
  EXPECT_EQ(place.rank, 2);
  EXPECT_EQ(place.size, 4);
  EXPECT_EQ(place.local_rank, 2);
  EXPECT_EQ(place.store_host, "127.0.0.1");
  EXPECT_EQ(place.store_port, 4000);
  EXPECT_EQ(place.store_ports, 1);
  EXPECT_EQ(place.token, "secret");
  EXPECT_TRUE(place.one_host);
  EXPECT_FALSE(place.store_served);
}

TEST(Environment, ALauncherThatServesTheStoreSaysSo) {
  EXPECT_TRUE(place_in(with(medley_set, {{"MEDLEY_STORE_SERVED", "1"}}))->store_served);
  EXPECT_THAT(complaint_about(with(medley_set, {{"MEDLEY_STORE_SERVED", "1"}, {"MEDLEY_TOKEN", ""}})),
              HasSubstr("MEDLEY_TOKEN"));
}

TEST(Environment, OnLoopbackWithoutATokenTheKernelVouchesForTheUser) {
  const Place place = place_in(with(medley_set, {{"MEDLEY_TOKEN", ""}})).value();
  EXPECT_THAT(place.store_host, StartsWith("@medley/"));
  EXPECT_FALSE(place.token.empty());
  const Place neighbour = place_in(with(medley_set, {{"MEDLEY_TOKEN", ""}, {"MEDLEY_RANK", "0"}})).value();
  EXPECT_EQ(neighbour.store_host, place.store_host);
  EXPECT_EQ(neighbour.token, place.token);
  const Place elsewhere =
      place_in(with(medley_set, {{"MEDLEY_TOKEN", ""}, {"MEDLEY_STORE", "127.0.0.1:4001"}})).value();
  EXPECT_NE(elsewhere.store_host, place.store_host);
}

TEST(Environment, AcrossHostsWithoutATokenItStaysEmpty) {
  const Place place = place_in(with(medley_set, {{"MEDLEY_TOKEN", ""}, {"MEDLEY_STORE", "node1:4000"}})).value();
  EXPECT_EQ(place.store_host, "node1");
  EXPECT_TRUE(place.token.empty());
  EXPECT_FALSE(place.one_host);
}

TEST(Environment, StoreAddressesOfBothProtocols) {
  EXPECT_EQ(place_in(with(medley_set, {{"MEDLEY_STORE", "[::1]:4000"}}))->store_host, "::1");
  EXPECT_TRUE(place_in(with(medley_set, {{"MEDLEY_STORE", "[::1]:4000"}}))->one_host);
  EXPECT_EQ(place_in(with(medley_set, {{"MEDLEY_STORE", "[fd00::2]:65535"}}))->store_port, 65535);
  for (const char* wrong :
       {"node1", "node1:", ":4000", "node1:0", "node1:65536", "node1:4e3", "fd00::2:4000", "[]:1", "@"}) {
    EXPECT_THAT(complaint_about(with(medley_set, {{"MEDLEY_STORE", wrong}})), HasSubstr("MEDLEY_STORE")) << wrong;
  }
}

TEST(Environment, HalfSetOrContradictoryVariablesAreNamed) {
  EXPECT_THAT(complaint_about({{"MEDLEY_RANK", "0"}}), HasSubstr("MEDLEY_WORLD_SIZE"));
  EXPECT_THAT(complaint_about({{"MEDLEY_WORLD_SIZE", "2"}}), HasSubstr("MEDLEY_RANK"));
  EXPECT_THAT(complaint_about({{"MEDLEY_RANK", "0"}, {"MEDLEY_WORLD_SIZE", "2"}}), HasSubstr("MEDLEY_STORE"));
  EXPECT_THAT(complaint_about({{"MEDLEY_STORE", "a:1"}}), HasSubstr("MEDLEY_RANK"));
  EXPECT_THAT(complaint_about(with(medley_set, {{"MEDLEY_RANK", "4"}})), HasSubstr("MEDLEY_RANK=4"));
  EXPECT_THAT(complaint_about(with(medley_set, {{"MEDLEY_RANK", "-1"}})), HasSubstr("MEDLEY_RANK=-1"));
  EXPECT_THAT(complaint_about(with(medley_set, {{"MEDLEY_RANK", "one"}})), HasSubstr("MEDLEY_RANK=\"one\""));
  EXPECT_THAT(complaint_about(with(medley_set, {{"MEDLEY_WORLD_SIZE", "0"}})), HasSubstr("MEDLEY_WORLD_SIZE=0"));
  EXPECT_THAT(complaint_about(with(medley_set, {{"MEDLEY_WORLD_SIZE", "99999999999"}})),
              HasSubstr("MEDLEY_WORLD_SIZE"));
  EXPECT_THAT(complaint_about(with(medley_set, {{"MEDLEY_LOCAL_RANK", "x"}})), HasSubstr("MEDLEY_LOCAL_RANK"));
  EXPECT_THAT(complaint_about({{"OMPI_COMM_WORLD_RANK", "0"}}), HasSubstr("OMPI_COMM_WORLD_SIZE"));
  EXPECT_THAT(complaint_about({{"PMI_SIZE", "2"}}), HasSubstr("PMI_RANK"));
}

TEST(Environment, OneRankNeedsNoStore) {
  EXPECT_EQ(place_in({{"MEDLEY_RANK", "0"}, {"MEDLEY_WORLD_SIZE", "1"}})->size, 1);
}

TEST(Environment, TorchrunAcrossHosts) {
  const Place place = place_in(torch_set).value();
  EXPECT_EQ(place.source, Place::Source::torchrun);
  EXPECT_EQ(place.rank, 3);
  EXPECT_EQ(place.size, 8);
  EXPECT_EQ(place.local_rank, 1);
  EXPECT_EQ(place.store_host, "node1");
  EXPECT_GT(place.store_port, 29500) << "torch's own store has MASTER_PORT";
  EXPECT_GT(place.store_ports, 1);
  EXPECT_TRUE(place.token.empty());
  EXPECT_EQ(place_in(with(torch_set, {{"MEDLEY_TOKEN", "t"}}))->token, "t");
}

TEST(Environment, TorchrunNearTheLastPortStaysBelow65536) {
  const Place place = place_in(with(torch_set, {{"MASTER_PORT", "65535"}})).value();
  EXPECT_LT(place.store_port + place.store_ports - 1, 65535);
}

TEST(Environment, TorchrunOnOneHostStaysOffTheNetwork) {
  for (const Variables& more : {Variables{{"LOCAL_WORLD_SIZE", "8"}}, Variables{{"MASTER_ADDR", "127.0.0.1"}}}) {
    const Place place = place_in(with(torch_set, more)).value();
    EXPECT_TRUE(place.one_host);
    EXPECT_THAT(place.store_host, StartsWith("@medley/"));
    const Place restarted = place_in(with(with(torch_set, more), {{"TORCHELASTIC_RESTART_COUNT", "1"}})).value();
    EXPECT_NE(restarted.store_host, place.store_host);
  }
}

TEST(Environment, HalfOfTorchrunsSetIsAnErrorOnlyWithoutAnotherLauncher) {
  const Variables exported = {{"WORLD_SIZE", "6"}, {"MASTER_ADDR", "gpu07"}, {"MASTER_PORT", "29500"}};
  EXPECT_EQ(place_in(with(slurm_set, exported))->source, Place::Source::slurm);
  EXPECT_EQ(place_in(with(open_mpi_set, exported))->source, Place::Source::open_mpi);
  EXPECT_THAT(complaint_about(exported), HasSubstr("RANK"));
  EXPECT_THAT(complaint_about({{"RANK", "0"}}), HasSubstr("WORLD_SIZE"));
  Variables no_port = torch_set;
  no_port.erase("MASTER_PORT");
  EXPECT_THAT(complaint_about(no_port), HasSubstr("MASTER_PORT"));
}

TEST(Environment, OpenMpiOnOneHost) {
  const Place place = place_in(open_mpi_set).value();
  EXPECT_EQ(place.source, Place::Source::open_mpi);
  EXPECT_EQ(place.rank, 1);
  EXPECT_EQ(place.size, 2);
  EXPECT_EQ(place.local_rank, 1);
  EXPECT_THAT(place.store_host, StartsWith("@medley/"));
  EXPECT_EQ(place.token, "e9dd491285bdbd3e-0629463eb7dc4b47") << "the secret mpirun draws for the job";
}

TEST(Environment, OpenMpiAcrossHostsNeedsAnAddress) {
  const Variables spread = with(open_mpi_set, {{"OMPI_COMM_WORLD_LOCAL_SIZE", "1"}});
  EXPECT_FALSE(place_in(spread)->one_host);
  EXPECT_TRUE(place_in(spread)->store_host.empty());
  const Place told = place_in(with(spread, {{"MEDLEY_STORE", "node3:5000"}})).value();
  EXPECT_EQ(told.store_host, "node3");
  EXPECT_EQ(told.store_port, 5000);
  EXPECT_EQ(told.rank, 1);
}

TEST(Environment, MpichOnOneHostAndUnderSlurm) {
  const Place place = place_in(mpich_set).value();
  EXPECT_EQ(place.source, Place::Source::mpich);
  EXPECT_EQ(place.rank, 1);
  EXPECT_EQ(place.local_rank, 1);
  EXPECT_TRUE(place.one_host);
  Variables pmi2 = with(slurm_set, {{"PMI_RANK", "5"}, {"PMI_SIZE", "6"}});
  const Place by_slurm = place_in(pmi2).value();
  EXPECT_EQ(by_slurm.source, Place::Source::mpich);
  EXPECT_EQ(by_slurm.store_host, "gpu07");
  EXPECT_EQ(by_slurm.store_port, place_in(slurm_set)->store_port);
}

TEST(Environment, SlurmStepAcrossHosts) {
  const Place place = place_in(slurm_set).value();
  EXPECT_EQ(place.source, Place::Source::slurm);
  EXPECT_EQ(place.rank, 5);
  EXPECT_EQ(place.size, 6);
  EXPECT_EQ(place.local_rank, 1);
  EXPECT_EQ(place.store_host, "gpu07");
  EXPECT_GE(place.store_port, 20000);
  EXPECT_LT(place.store_port + place.store_ports, 32768) << "below the ephemeral range";
  EXPECT_TRUE(place.token.empty());
  EXPECT_NE(place_in(with(slurm_set, {{"SLURM_STEP_ID", "1"}}))->store_port, place.store_port);
  EXPECT_NE(place_in(with(slurm_set, {{"SLURM_JOB_ID", "4712"}}))->store_port, place.store_port);
}

TEST(Environment, SlurmStepOnOneHostStaysOffTheNetwork) {
  const Place place = place_in(with(slurm_set, {{"SLURM_STEP_NODELIST", "gpu07"}})).value();
  EXPECT_TRUE(place.one_host);
  EXPECT_THAT(place.store_host, StartsWith("@medley/"));
}

TEST(Environment, APlainSbatchScriptIsOneRank) {
  EXPECT_FALSE(place_in(
      {{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}, {"SLURM_JOB_ID", "4711"}, {"SLURM_NODELIST", "gpu[07-08]"}}));
}

TEST(Environment, ASlurmStepWithoutItsNodesIsAnError) {
  Variables variables = slurm_set;
  variables.erase("SLURM_STEP_NODELIST");
  EXPECT_THAT(complaint_about(variables), HasSubstr("SLURM_STEP_NODELIST"));
  EXPECT_EQ(place_in(with(variables, {{"MEDLEY_STORE", "gpu07:5000"}}))->store_host, "gpu07");
}

TEST(Environment, FirstMatchWins) {
  Variables all = with(with(with(slurm_set, mpich_set), open_mpi_set), torch_set);
  EXPECT_EQ(place_in(with(all, medley_set))->source, Place::Source::medley);
  EXPECT_EQ(place_in(all)->source, Place::Source::torchrun);
  EXPECT_EQ(place_in(with(with(slurm_set, mpich_set), open_mpi_set))->source, Place::Source::open_mpi);
  EXPECT_EQ(place_in(with(slurm_set, mpich_set))->source, Place::Source::mpich);
}

TEST(Environment, MisspeltVariablesAreNamedWithTheNearestOne) {
  EXPECT_EQ(about_unknown_variables({"MEDLEY_BACKEND", "PATH", "MEDLEY_FOO", "MEDLEY_TRACES", "MY_MEDLEY_RANK"}),
            (std::vector<std::string>{"MEDLEY_BACKEND is not known; did you mean MEDLEY_BACKENDS?",
                                      "MEDLEY_FOO is not known; see medley help environment",
                                      "MEDLEY_TRACES is not known; did you mean MEDLEY_TRACE?"}));
  EXPECT_EQ(
      about_unknown_variables({"MEDLEY_BACKENDS", "MEDLEY_RANK", "MEDLEY_TOKEN", "MEDLEY_TRACE", "MEDLEY_TEST_FULL",
                               "MEDLEY_SEED", "MEDLEY_DIR", "MEDLEY_STORE_SERVED", "MEDLEY_", "MEDLEY_A\033[31mB"}),
      std::vector<std::string>{});
}

}  // namespace
}  // namespace medley
