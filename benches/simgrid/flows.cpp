// The peer of benches/fluid: the same flows under SimGrid's fluid network model.
//
// usage: flows FILE [ENDS]   FILE as `cargo bench --bench fluid -- write` makes it; ENDS: completion times go there.
// Prints: flows, seconds of CPU for the simulation alone, the last end in simulated seconds.
// Latencies are 0 and the model is CM02 without the corrections for TCP: plain max-min fairness, as ours.

#include <cstdio>
#include <ctime>
#include <fstream>
#include <iostream>
#include <map>
#include <simgrid/s4u.hpp>
#include <string>
#include <vector>

namespace sg4 = simgrid::s4u;

struct Flow {
  double at_s;
  double bytes;
  unsigned from;
  unsigned to;
};

int main(int argc, char** argv)
{
  sg4::Engine engine(&argc, argv);
  if (argc < 2) {
    std::cerr << "usage: flows FILE [ENDS]\n";
    return 2;
  }
  for (const char* setting : {"network/model:CM02", "network/crosstraffic:0", "network/TCP-gamma:0",
                              "network/weight-S:0", "network/latency-factor:1", "network/bandwidth-factor:1"})
    sg4::Engine::set_config(setting);

  std::ifstream in(argv[1]);
  size_t hosts = 0, links = 0, flows = 0;
  in >> hosts >> links >> flows;
  auto* zone = sg4::create_full_zone("network");
  std::vector<sg4::Host*> host(hosts);
  for (size_t at = 0; at < hosts; at++)
    host[at] = zone->create_host("h" + std::to_string(at), 1e9);
  std::vector<sg4::Link*> link(links);
  for (size_t at = 0; at < links; at++) {
    double bits_per_s = 0;
    in >> bits_per_s;
    link[at] = zone->create_link("l" + std::to_string(at), bits_per_s / 8)->set_latency(0.0)->seal();
  }
  std::vector<Flow> flow(flows);
  std::map<std::pair<unsigned, unsigned>, bool> known;
  for (auto& one : flow) {
    size_t hops = 0;
    in >> one.at_s >> one.bytes >> one.from >> one.to >> hops;
    std::vector<sg4::LinkInRoute> way;
    for (size_t hop = 0, at = 0; hop < hops && in >> at; hop++)
      way.emplace_back(link.at(at));
    if (known.emplace(std::make_pair(one.from, one.to), true).second)
      zone->add_route(host.at(one.from)->get_netpoint(), host.at(one.to)->get_netpoint(), nullptr, nullptr, way, false);
  }
  if (!in) {
    std::cerr << argv[1] << ": not whole\n";
    return 2;
  }
  zone->seal();

  std::vector<sg4::CommPtr> comm;
  comm.reserve(flows);
  sg4::Actor::create("feeder", host[0], [&] {
    for (const auto& one : flow) {
      sg4::this_actor::sleep_until(one.at_s);
      comm.push_back(sg4::Comm::sendto_async(host[one.from], host[one.to], static_cast<uint64_t>(one.bytes)));
    }
    for (const auto& one : comm)
      one->wait();
  });
  const auto from = std::clock();
  engine.run();
  const double cpu_s = static_cast<double>(std::clock() - from) / CLOCKS_PER_SEC;
  std::printf("%zu %.6f %.9f\n", flows, cpu_s, sg4::Engine::get_clock());
  if (argc > 2) {
    std::ofstream out(argv[2]);
    out.precision(17);
    for (const auto& one : comm)
      out << one->get_finish_time() << "\n";
  }
}
