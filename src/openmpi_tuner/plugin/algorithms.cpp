#include "openmpi_tuner/plugin/algorithms.hpp"

#include <fmt/format.h>

#include <array>
#include <medley/error.hpp>

namespace medley::openmpi_tuner {
namespace {

/// What a variable of MPI's tool interface says about itself.
struct Variable {
  std::string name;
  MPI_T_enum values = MPI_T_ENUM_NULL;
};

Variable variable_at(int index) {
  std::array<char, 256> name{};
  int name_length = static_cast<int>(name.size()), description_length = 0, verbosity = 0, bind = 0, scope = 0;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  Variable found;
  MPI_T_cvar_get_info(index, name.data(), &name_length, &verbosity, &type, &found.values, nullptr, &description_length,
                      &bind, &scope);
  found.name = name.data();
  return found;
}

std::vector<Algorithm> algorithms_of(MPI_T_enum values) {
  std::array<char, 256> name{};
  int count = 0, length = static_cast<int>(name.size());
  MPI_T_enum_get_info(values, &count, name.data(), &length);
  std::vector<Algorithm> found;
  for (int item = 0; item < count; ++item) {
    int number = 0;
    length = static_cast<int>(name.size());
    MPI_T_enum_get_item(values, item, &number, name.data(), &length);
    found.push_back({number, name.data()});
  }
  return found;
}

}  // namespace

AlgorithmVariable::AlgorithmVariable(const std::string& collective) {
  const std::string wanted = fmt::format("coll_tuned_{}_algorithm", collective);
  int count = 0;
  MPI_T_cvar_get_num(&count);
  for (int index = 0; index < count; ++index) {
    const Variable variable = variable_at(index);
    if (variable.name != wanted || variable.values == MPI_T_ENUM_NULL) continue;
    int elements = 0;
    MPI_T_cvar_handle_alloc(index, nullptr, &handle_, &elements);
    algorithms_ = algorithms_of(variable.values);
    return;
  }
  throw Error(ErrorKind::unavailable,
              fmt::format("this Open MPI has no variable {}: its component coll/tuned is missing", wanted));
}

AlgorithmVariable::~AlgorithmVariable() {
  set(0);
  MPI_T_cvar_handle_free(&handle_);
}

void AlgorithmVariable::set(int number) { MPI_T_cvar_write(handle_, &number); }

ForcedComm::ForcedComm(AlgorithmVariable& variable, const Algorithm& algorithm) {
  variable.set(algorithm.number);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm_);
  variable.set(0);
  MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);  // an algorithm may refuse this number of ranks
}

}  // namespace medley::openmpi_tuner
