from spack.package import *


class Medley(CMakePackage):
    """A mix-and-match communication runtime for deep learning: shm, MPI, gloo, UCX and NCCL behind one interface, with
    plans, traces and shape advice."""

    # Built from a checkout: spack dev-build medley@main, in the repository's root.
    version("main", no_cache=True)

    variant("mpi", default=True, description="The mpi backend")
    variant("ucx", default=True, description="The ucx backend")
    variant("zfp", default=True, description="The lossy codec zfp")
    variant("nccl", default=False, description="The nccl backend and CUDA memory")
    variant("python", default=False, description="The Python package")

    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("ninja", type="build")
    depends_on("fmt@9:")
    depends_on("highway")
    depends_on("cli11")
    depends_on("nlohmann-json")
    depends_on("tomlplusplus")
    depends_on("yaml-cpp")
    depends_on("libsodium")
    depends_on("zlib-api")
    depends_on("zstd")
    depends_on("lz4")
    depends_on("zfp", when="+zfp")
    depends_on("pkgconfig", type="build")
    depends_on("mpi", when="+mpi")
    depends_on("ucx@1.11:", when="+ucx")
    depends_on("nccl@2.18:", when="+nccl")
    depends_on("cuda", when="+nccl")
    depends_on("python@3.9:", when="+python")
    depends_on("py-nanobind@2.2:", type="build", when="+python")

    generator("ninja")

    def cmake_args(self):
        return [
            self.define("MEDLEY_TESTS", False),
            self.define("MEDLEY_PYTHON", "auto" if self.spec.satisfies("+python") else "OFF"),
        ]
