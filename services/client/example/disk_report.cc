// An example of a plugin: reports how full this machine's disks are.
//
//   g++ disk_report.cc -o disk_report $(pkg-config --cflags --libs muster-client)
//   muster credentials export RUN --plugin disks --node n1 --format json > node.json
//   ./disk_report node.json
#include <muster/client.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>

namespace {

int Fail(const muster::client::Status& status) {
  std::cerr << status.message << "\n" << status.next_step << "\n";
  return static_cast<int>(status.code);
}

void WriteReport(const std::string& path) {
  std::ofstream report(path);
  std::ifstream mounts("/proc/self/mounts");
  for (std::string device, folder, rest;
       mounts >> device >> folder && std::getline(mounts, rest);) {
    std::error_code error;
    const auto space = std::filesystem::space(folder, error);
    if (error || space.capacity == 0) continue;
    report << folder << " " << 100 - 100 * space.available / space.capacity << "% full\n";
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: disk_report CONFIGURATION\n";
    return 2;
  }
  muster::client::Status status;
  const auto config = muster::client::Config::Load(argv[1], &status);
  if (!config) return Fail(status);
  const auto client = muster::client::Client::Create(*config, &status);
  if (!client) return Fail(status);

  client->StartHeartbeats();  // until the client's end

  muster::client::Progress progress;
  progress.message = "looking at the disks";
  client->ReportProgress(progress);  // optional: a failed report does not stop the work

  char folder[] = "/tmp/disk_report.XXXXXX";
  if (::mkdtemp(folder) == nullptr) return 1;
  const std::string path = std::string(folder) + "/disks.txt";
  WriteReport(path);
  const muster::client::Delivery delivery = client->SubmitFile(path, {});
  std::filesystem::remove_all(folder);
  if (!delivery.status.ok()) return Fail(delivery.status);
  std::cerr << "committed " << delivery.receipt.size << " bytes\n";
  return 0;
}
