// One MPI_Alltoall. Exit status 0 if MPI did it, 1 if it refused: algorithm 5 of Open MPI only works with two ranks.
#include <mpi.h>

int main(int argc, char** argv) {
  int in[64] = {0}, out[64] = {0};
  MPI_Init(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  const int failed = MPI_Alltoall(in, 1, MPI_INT, out, 1, MPI_INT, MPI_COMM_WORLD) != MPI_SUCCESS;
  MPI_Finalize();
  return failed;
}
