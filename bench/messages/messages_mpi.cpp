// Messages by bare MPI, one source for every MPI. Run by bench/messages/compare; alone:
//   mpirun -n 2 messages_mpi_openmpi --seconds 0.1
// With MESSAGES_NONBLOCKING=1, by nonblocking calls and MPI_Test, at the thread level that Medley asks for: the least
// that a library takes which never blocks inside MPI.
// The C API alone: MPI's old C++ classes do not compile without warnings.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <cstdio>
#include <cstdlib>

#include "messages/messages.hpp"

namespace {

using medley::bench::Message;

class MpiLink {
 public:
  explicit MpiLink(bool nonblocking) : nonblocking_(nonblocking) {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    int size = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size != 2) throw std::invalid_argument("two ranks are needed: mpirun -n 2 …");
  }
  int rank() const { return rank_; }
  void send(std::span<const std::byte> data, int tag) {
    if (nonblocking_) {
      MPI_Request request = MPI_REQUEST_NULL;
      MPI_Isend(data.data(), static_cast<int>(data.size()), MPI_BYTE, 1 - rank_, tag, MPI_COMM_WORLD, &request);
      return test_until_complete(request);
    }
    MPI_Send(data.data(), static_cast<int>(data.size()), MPI_BYTE, 1 - rank_, tag, MPI_COMM_WORLD);
  }
  void recv(std::span<std::byte> data, int tag) {
    if (nonblocking_) {
      MPI_Request request = MPI_REQUEST_NULL;
      MPI_Irecv(data.data(), static_cast<int>(data.size()), MPI_BYTE, 1 - rank_, tag, MPI_COMM_WORLD, &request);
      return test_until_complete(request);
    }
    MPI_Recv(data.data(), static_cast<int>(data.size()), MPI_BYTE, 1 - rank_, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
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
  static void test_until_complete(MPI_Request request) {
    for (int done = 0; !done;) MPI_Test(&request, &done, MPI_STATUS_IGNORE);
  }
  bool nonblocking_;
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
  const bool nonblocking = std::getenv("MESSAGES_NONBLOCKING") != nullptr;
  int level = 0;
  MPI_Init_thread(&argc, &argv, nonblocking ? MPI_THREAD_SERIALIZED : MPI_THREAD_SINGLE, &level);
  try {
    const medley::bench::Options options = medley::bench::parse_options(argc, argv);
    MpiLink link(nonblocking);
    const std::string version = library_version();
    medley::bench::report(link, version.find("Open MPI") != std::string::npos ? "openmpi" : "mpich", version, options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "messages_mpi: %s\n", error.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
  return 0;
}
