// LEMON's two best solvers on DIMACS files: one line a file and solver, with the milliseconds of setting up and solving.
#include <lemon/cost_scaling.h>
#include <lemon/dimacs.h>
#include <lemon/network_simplex.h>
#include <lemon/smart_graph.h>

#include <chrono>
#include <fstream>
#include <iostream>

using Graph = lemon::SmartDigraph;
using Values = Graph::ArcMap<long long>;

template <typename Solver>
void solve(const char *file, const char *name, const Graph &graph, const Values &lower, const Values &upper, const Values &cost,
           const Graph::NodeMap<long long> &supply) {
    const auto begun = std::chrono::steady_clock::now();
    Solver solver(graph);
    solver.lowerMap(lower).upperMap(upper).costMap(cost).supplyMap(supply);
    solver.run();
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begun;
    std::cout << file << ' ' << name << ' ' << solver.totalCost() << ' ' << took.count() << '\n';
}

int main(int count, char **files) {
    for (int at = 1; at < count; ++at) {
        Graph graph;
        Values lower(graph), upper(graph), cost(graph);
        Graph::NodeMap<long long> supply(graph);
        std::ifstream file(files[at]);
        lemon::readDimacsMin(file, graph, lower, upper, cost, supply, 0LL);
        solve<lemon::NetworkSimplex<Graph, long long>>(files[at], "lemon-simplex", graph, lower, upper, cost, supply);
        solve<lemon::CostScaling<Graph, long long>>(files[at], "lemon-scaling", graph, lower, upper, cost, supply);
    }
}
