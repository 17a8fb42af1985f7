// Messages by bare MPI, one source for every MPI. Run by bench/messages/compare; alone:
//   mpirun -n 2 messages_mpi_openmpi --seconds 0.1
// The C API alone: MPI's old C++ classes do not compile without warnings.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <cstdio>

#include "messages/messages.hpp"

namespace {

using medley::bench::Message;

class MpiLink {
 public:
  MpiLink() {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    int size = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size != 2) throw std::invalid_argument("two ranks are needed: mpirun -n 2 …");
  }
  int rank() const { return rank_; }
  void send(std::span<const std::byte> data, int tag) {
    MPI_Send(data.data(), static_cast<int>(data.size()), MPI_BYTE, 1 - rank_, tag, MPI_COMM_WORLD);
  }
  void recv(std::span<std::byte> data, int tag) {
    MPI_Recv(data.data(), static_cast<int>(data.size()), MPI_BYTE, 1 - rank_, tag, MPI_COMM_WORLD,
             MPI_STATUS_IGNORE);
  }
  void exchange(std::span<Message> messages) {
    requests_.resize(2 * messages.size());
    MPI_Request* next = requests_.data();
    for (const Message& message : messages) {
      MPI_Irecv(message.in.data(), static_cast<int>(message.in.size()), MPI_BYTE, 1 - rank_, message.tag,
                MPI_COMM_WORLD, next++);
    }
    for (const Message& message : messages) {
      MPI_Isend(message.out.data(), static_cast<int>(message.out.size()), MPI_BYTE, 1 - rank_, message.tag,
                MPI_COMM_WORLD, next++);
    }
    MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
  }

 private:
  int rank_ = 0;
  std::vector<MPI_Request> requests_;
};

std::string library_version() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  MPI_Get_library_version(text, &length);
  const std::string version(text);
  return version.substr(0, version.find('\n'));  // MPICH goes on for lines about how it was built
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  try {
    const medley::bench::Options options = medley::bench::parse_options(argc, argv);
    MpiLink link;
    const std::string version = library_version();
    medley::bench::report(link, version.find("Open MPI") != std::string::npos ? "openmpi" : "mpich", version,
                          options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "messages_mpi: %s\n", error.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
  return 0;
}
