"""Rounds of placements by measured latency as minimum-cost flows (paper 003, section 4) in DIMACS's format.

A task may go to machines near its job's root, to racks, anywhere (at the cost of the worst rack), or wait. Plain: a node a
task. Aggregated: a node a job, with as much supply.
"""

import random


def write(path, tasks, machines, aggregated, free, seed=1):
    """Writes one round: `free` is the share of machines that have a slot or more."""
    draw = random.Random(seed)
    racks = max(machines // 48, 1)
    rack_of = [machine * racks // machines for machine in range(machines)]
    slots = [draw.randint(1, 4) if draw.random() < free else 0 for _ in range(machines)]
    nodes, arcs, supplies = 0, [], {}

    def node():
        nonlocal nodes
        nodes += 1
        return nodes

    sink, anywhere = node(), node()
    rack_nodes = [node() for _ in range(racks)]
    machine_nodes = [node() for _ in range(machines)]
    arcs += [(anywhere, rack, 10**6, 0) for rack in rack_nodes]
    for machine in range(machines):
        arcs.append((rack_nodes[rack_of[machine]], machine_nodes[machine], slots[machine], 0))
        arcs.append((machine_nodes[machine], sink, slots[machine], 0))
    left = tasks
    while left:
        count = min(left, max(1, int(draw.lognormvariate(2.5, 1.2))))
        left -= count
        root, waits = draw.randrange(machines), node()
        arcs.append((waits, sink, count, 0))
        by_rack = [max(100, min(1000, int(draw.gauss(300, 150)))) for _ in range(racks)]
        by_rack[rack_of[root]] = 120
        near = [machine for machine in range(machines) if rack_of[machine] == rack_of[root] and draw.random() < 0.6]
        near = [(machine_nodes[m], draw.randint(100, 105)) for m in near + draw.sample(range(machines), 60)]
        near += [(rack_nodes[r], by_rack[r] + 10) for r in range(racks) if by_rack[r] <= 190]
        for supply in [count] if aggregated else [1] * count:
            task = node()
            supplies[task] = supply
            ways = [(waits, 1001), (anywhere, max(by_rack) + 20), *near]
            arcs += [(task, to, supply, cost) for to, cost in ways]
    with open(path, "w", encoding="ascii") as file:
        print(f"p min {nodes} {len(arcs)}", file=file)
        print(f"n {sink} {-tasks}", file=file)
        for task, supply in supplies.items():
            print(f"n {task} {supply}", file=file)
        for begin, end, capacity, cost in arcs:
            print(f"a {begin} {end} 0 {capacity} {cost}", file=file)
