#include "bootstrap/host.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <fstream>

namespace medley {
namespace {

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// Device and inode identify a namespace or a mount; they are unique within one boot of one kernel.
std::string device_and_inode(const char* path) {
  struct stat status {};
  if (stat(path, &status) != 0) return "?";
  return fmt::format("{}:{}", status.st_dev, status.st_ino);
}

}  // namespace

std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "localhost";
  return name.data();
}

std::string kernel_identity() { return first_line("/proc/sys/kernel/random/boot_id"); }

std::string host_identity() {
  // Machines cloned from one snapshot share the kernel's identity; their names then differ.
  std::string identity = kernel_identity() + "/" + host_name();
  // The same /dev/shm: containers have their own, with another device or, bind-mounted from a folder, another inode.
  identity += "/shm=" + device_and_inode("/dev/shm");
  // The same pid namespace: process_vm_readv and pidfd_open take pids.
  identity += "/pid=" + device_and_inode("/proc/self/ns/pid");
  // Permission to read each other's memory is checked within one user namespace, for one user; segments are
  // mode 0600.
  identity += "/user=" + device_and_inode("/proc/self/ns/user") + fmt::format("/uid={}", geteuid());
  // A process in another network namespace counts as another host, as it does for every network backend.
  identity += "/net=" + device_and_inode("/proc/self/ns/net");
  return identity;
}

}  // namespace medley
