import type { Backend, NodeHealth, NodeLoad } from "@dsec/contracts";

/** What placement knows of a node. */
export interface PlacementNode {
  readonly id: string;
  readonly health: NodeHealth;
  readonly backends: readonly Backend[];
  readonly load: NodeLoad | null;
  /** Sandboxes placed here by this instance that `load` does not show yet. */
  readonly recent: number;
}

/**
 * All nodes in the order that a key gives them. The same key and nodes give the same order on every instance; a node that comes or
 * goes moves no other (rendezvous hashing).
 */
export function orderOf<Node extends { readonly id: string }>(nodes: readonly Node[], key: string): Node[] {
  return nodes
    .map((node) => ({ node, weight: hash(`${key} ${node.id}`) }))
    .toSorted((one, two) => two.weight - one.weight || (one.node.id < two.node.id ? -1 : 1))
    .map(({ node }) => node);
}

/** The k candidates of a round that can take the sandbox, least loaded first. */
export function rank(candidates: readonly PlacementNode[], backend: Backend): PlacementNode[] {
  return candidates
    .filter((node) => canTake(node, backend))
    .toSorted((one, two) => utilization(one) - utilization(two));
}

/** Healthy, has the backend, admits. */
export function canTake(node: PlacementNode, backend: Backend): boolean {
  return (
    node.health === "healthy" &&
    node.backends.includes(backend) &&
    node.load !== null &&
    node.load.admitting &&
    utilization(node) < 1
  );
}

/** Sandboxes there and on their way, as a share of what the node admits. */
function utilization(node: PlacementNode): number {
  if (node.load === null || node.load.sandboxesMax === 0) return 1;
  return (node.load.sandboxes + node.load.creating + node.recent) / node.load.sandboxesMax;
}

/**
 * 53 bits of a string: two lanes of FNV-1a (32 bit, other offsets) with the final mix of MurmurHash3, so that near keys give far weights.
 */
function hash(text: string): number {
  let one = 0x811c9dc5;
  let two = 0x1000193;
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    one = Math.imul(one ^ code, 0x01000193);
    two = Math.imul(two ^ code, 0x85ebca6b);
  }
  return (mix(one) & 0x1fffff) * 2 ** 32 + mix(two);
}

function mix(value: number): number {
  let mixed = value ^ (value >>> 16);
  mixed = Math.imul(mixed, 0x85ebca6b);
  mixed ^= mixed >>> 13;
  mixed = Math.imul(mixed, 0xc2b2ae35);
  return (mixed ^ (mixed >>> 16)) >>> 0;
}
