// Prints what each rank received from the others: "rank R of N met 0 1 2". Run by the launcher's tests.
#include <cstdio>
#include <medley/error.hpp>

#include "bootstrap/rendezvous.hpp"

int main() {
  try {
    const auto place = medley::find_place(medley::process_environment()).value_or(medley::Place{});
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    auto store = medley::connect_store(place, deadline);
    const auto all = medley::exchange(*store, "meet", place.rank, place.size, std::to_string(place.rank), deadline);
    std::string line = "rank " + std::to_string(place.rank) + " of " + std::to_string(place.size) + " met";
    for (const auto& other : all) line += " " + other;
    std::puts(line.c_str());
  } catch (const medley::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
