//! The spanning tree of the network simplex: who hangs on whom by which arc, and each node's price.

/// No node.
pub(super) const NONE: u32 = u32::MAX;

/// The arc between a node and the root that is not the problem's: it takes what no other arc can.
pub(super) const ARTIFICIAL: u32 = u32::MAX;

/// By node, the root last.
#[derive(Debug, Clone, Default)]
pub(super) struct Tree {
    pub(super) parent: Vec<u32>,
    /// The arc to the parent; [`ARTIFICIAL`].
    pub(super) arc: Vec<u32>,
    /// That arc goes to the parent, and not from it.
    pub(super) up: Vec<bool>,
    /// What an artificial arc carries.
    pub(super) artificial_flow: Vec<i64>,
    /// Prices: the reduced cost of an arc is cost + price of its begin − price of its end, 0 for arcs of the tree.
    pub(super) price: Vec<i64>,
    depth: Vec<u32>,
    first_child: Vec<u32>,
    next: Vec<u32>,
    previous: Vec<u32>,
}

impl Tree {
    /// The root.
    pub(super) fn root(&self) -> u32 {
        self.parent.len() as u32 - 1
    }

    /// Nodes without the root.
    pub(super) fn nodes(&self) -> usize {
        self.parent.len().saturating_sub(1)
    }

    /// As many nodes, the root besides; new ones hang on nothing yet. What hung on the root hangs on the new one.
    pub(super) fn resize(&mut self, nodes: usize) {
        let before = self.nodes();
        if !self.parent.is_empty() && nodes == before {
            return;
        }
        for list in [&mut self.parent, &mut self.arc, &mut self.first_child, &mut self.next, &mut self.previous] {
            list.resize(nodes + 1, NONE);
        }
        self.up.resize(nodes + 1, true);
        self.artificial_flow.resize(nodes + 1, 0);
        self.price.resize(nodes + 1, 0);
        self.depth.resize(nodes + 1, 0);
        let root = nodes as u32;
        self.parent[..before].iter_mut().filter(|parent| **parent == before as u32).for_each(|parent| *parent = root);
        // The former root's place is a node's now.
        for at in before..=nodes {
            (self.parent[at], self.arc[at], self.price[at]) = (if at == nodes { NONE } else { root }, ARTIFICIAL, 0);
        }
    }

    /// The node hangs on the root by its own arc, which carries so much (below 0: from the root).
    pub(super) fn hang_on_root(&mut self, node: u32, flow: i64) {
        let at = node as usize;
        (self.parent[at], self.arc[at]) = (self.root(), ARTIFICIAL);
        (self.up[at], self.artificial_flow[at]) = (flow >= 0, flow.abs());
    }

    /// Children, depths and prices of all nodes from their parents; `cost` of an arc by its number.
    pub(super) fn rebuild(&mut self, cost: impl Fn(u32) -> i64, artificial_cost: i64) {
        let root = self.root();
        self.first_child.iter_mut().for_each(|child| *child = NONE);
        for node in 0..root {
            self.link(node, self.parent[node as usize]);
        }
        (self.price[root as usize], self.depth[root as usize]) = (0, 0);
        self.walk(root, |tree, node| {
            let (at, parent) = (node as usize, tree.parent[node as usize] as usize);
            let cost = if tree.arc[at] == ARTIFICIAL { artificial_cost } else { cost(tree.arc[at]) };
            tree.price[at] = if tree.up[at] { tree.price[parent] - cost } else { tree.price[parent] + cost };
            tree.depth[at] = tree.depth[parent] + 1;
        });
    }

    /// Nodes in an order in which each comes after its parent, without the root. Children have to be there.
    pub(super) fn top_down(&mut self) -> Vec<u32> {
        let root = self.root();
        self.first_child.iter_mut().for_each(|child| *child = NONE);
        for node in 0..root {
            self.link(node, self.parent[node as usize]);
        }
        let mut order = Vec::with_capacity(root as usize);
        self.walk(root, |_, node| order.push(node));
        order
    }

    /// Goes through all below a node, parents first.
    fn walk(&mut self, top: u32, mut visit: impl FnMut(&mut Self, u32)) {
        let mut node = self.first_child[top as usize];
        while node != NONE {
            visit(self, node);
            let child = self.first_child[node as usize];
            if child != NONE {
                node = child;
                continue;
            }
            while node != top && self.next[node as usize] == NONE {
                node = self.parent[node as usize];
            }
            if node == top {
                return;
            }
            node = self.next[node as usize];
        }
    }

    fn link(&mut self, node: u32, parent: u32) {
        let first = self.first_child[parent as usize];
        (self.next[node as usize], self.previous[node as usize]) = (first, NONE);
        if first != NONE {
            self.previous[first as usize] = node;
        }
        self.first_child[parent as usize] = node;
    }

    fn unlink(&mut self, node: u32) {
        let (previous, next) = (self.previous[node as usize], self.next[node as usize]);
        if previous == NONE {
            self.first_child[self.parent[node as usize] as usize] = next;
        } else {
            self.next[previous as usize] = next;
        }
        if next != NONE {
            self.previous[next as usize] = previous;
        }
    }

    /// The node nearest to both where their ways to the root meet.
    pub(super) fn join(&self, mut one: u32, mut other: u32) -> u32 {
        while one != other {
            if self.depth[one as usize] >= self.depth[other as usize] {
                one = self.parent[one as usize];
            } else {
                other = self.parent[other as usize];
            }
        }
        one
    }

    /// The subtree below `out` is cut off and hangs on `on` by `arc` at its node `hook` from now on. `up`: the arc goes from
    /// `hook` to `on`. `reduced`: of that arc, before; prices below change by it.
    pub(super) fn rehang(&mut self, out: u32, hook: u32, on: u32, (arc, up): (u32, bool), reduced: i64) {
        let (mut node, mut parent, mut arc, mut up_now) = (hook, on, arc, up);
        loop {
            let at = node as usize;
            let (old_parent, old_arc, old_up) = (self.parent[at], self.arc[at], self.up[at]);
            self.unlink(node);
            (self.parent[at], self.arc[at], self.up[at]) = (parent, arc, up_now);
            self.link(node, parent);
            if node == out {
                break;
            }
            (parent, arc, up_now, node) = (node, old_arc, !old_up, old_parent);
        }
        let change = if up { -reduced } else { reduced };
        self.price[hook as usize] += change;
        self.depth[hook as usize] = self.depth[on as usize] + 1;
        self.walk(hook, |tree, node| {
            tree.price[node as usize] += change;
            tree.depth[node as usize] = tree.depth[tree.parent[node as usize] as usize] + 1;
        });
    }
}
