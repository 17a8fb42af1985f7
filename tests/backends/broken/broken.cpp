// Backends that do not work, each in the way MEDLEY_BROKEN names; what the loader is tested with.
#include <medley/backend.hpp>
#include <stdexcept>

namespace {

using namespace medley;

std::string unavailable() {
  if (MEDLEY_BROKEN == std::string_view("throwing")) throw std::runtime_error("the cable is unplugged");
  if (MEDLEY_BROKEN == std::string_view("lacking")) return "there is no such network here";
  return {};
}

std::unique_ptr<Backend> create(const Surroundings&) {
  throw std::runtime_error("the library refused");
}

}  // namespace

extern "C" const medley::BackendPlugin* medley_backend() {
  static const BackendPlugin plugin{
      .abi =
          MEDLEY_BROKEN == std::string_view("foreign") ? std::string_view("medley-backend-0") : backend_abi,
      .name = MEDLEY_BROKEN,
      .unavailable = unavailable,
      .create = create,
  };
  return MEDLEY_BROKEN == std::string_view("empty") ? nullptr : &plugin;
}
