// Messages through Medley, over the backend that is named. Run by bench/messages/compare; alone:
//   medley run -n 2 --backends ucx -- messages_medley ucx --seconds 0.1
#include <cstdio>
#include <medley/medley.hpp>
#include <string>

#include "messages/messages.hpp"

namespace {

using namespace medley;

class MedleyLink {
 public:
  MedleyLink(Comm comm, const std::string& backend) : comm_(std::move(comm)), peer_(1 - comm_.rank()) {
    blocking_.backend = async_.backend = backend;
    async_.async = true;
  }
  int rank() const { return comm_.rank(); }
  void send(std::span<const std::byte> data, int tag) {
    blocking_.tag = tag;
    comm_.send(bytes(data), peer_, blocking_);
  }
  void recv(std::span<std::byte> data, int tag) {
    blocking_.tag = tag;
    comm_.recv(bytes(data), peer_, blocking_);
  }
  void exchange(std::span<bench::Message> messages) {
    works_.clear();
    for (const bench::Message& message : messages) {
      async_.tag = message.tag;
      works_.push_back(comm_.recv(bytes(message.in), peer_, async_));
    }
    for (const bench::Message& message : messages) {
      async_.tag = message.tag;
      works_.push_back(comm_.send(bytes(message.out), peer_, async_));
    }
    for (Work& work : works_) work.wait();
  }

 private:
  static ConstBuffer bytes(std::span<const std::byte> data) {
    return ConstBuffer(data.data(), static_cast<std::int64_t>(data.size()), DType::u8);
  }
  static Buffer bytes(std::span<std::byte> data) {
    return Buffer(data.data(), static_cast<std::int64_t>(data.size()), DType::u8);
  }
  Comm comm_;
  int peer_;
  medley::Options blocking_, async_;
  std::vector<Work> works_;
};

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc < 2) throw Error(ErrorKind::invalid, "name a backend: messages_medley shm --seconds 0.1");
    const std::string backend = argv[1];
    const bench::Options options = bench::parse_options(argc - 1, argv + 1);
    Context context(std::vector<std::string>{backend});
    if (context.size() != 2) throw Error(ErrorKind::invalid, "two ranks are needed: medley run -n 2 …");
    MedleyLink link(context.world(), backend);
    bench::report(link, backend, context.backends().front().version, options);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "messages_medley: %s\n", error.what());
    return 1;
  }
}
