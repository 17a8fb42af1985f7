// Backends that do not work, each in the way MEDLEY_BROKEN names; for the tests of the plugin loader.
#include <medley/backend.hpp>
#include <stdexcept>

namespace {

using namespace medley;

constexpr bool is(std::string_view kind) { return kind == MEDLEY_BROKEN; }

std::string unavailable() {
  if (is("throwing")) throw std::runtime_error("the cable is unplugged");
  if (is("lacking")) return "there is no such network here";
  return {};
}

std::unique_ptr<Backend> create(const BackendParams&) { throw std::runtime_error("the library refused"); }

}  // namespace

extern "C" const medley::BackendPlugin* medley_backend() {
  static const BackendPlugin plugin{
      .abi = is("foreign") ? std::string_view("medley-backend-0") : backend_abi,
      .build = is("compiled") ? std::string_view("another library") : build_abi,
      .sizes = is("resized") ? BoundarySizes{1, 2, 3, 4, 5} : BackendPlugin::boundary_sizes(),
      .name = MEDLEY_BROKEN,
      .unavailable = unavailable,
      .create = create,
  };
  return is("empty") ? nullptr : &plugin;
}
