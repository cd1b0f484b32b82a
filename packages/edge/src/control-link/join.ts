import { type Backend, type Capability, JoinedNode, type JoinNode, routes } from "@dsec/contracts";
import { createRequest, fingerprint, parse } from "@dsec/kit";
import { pinAuthority } from "./authority.ts";
import { ClusterClient } from "./cluster-client.ts";
import { type Membership, readMembership, writeMembership } from "./state.ts";

export interface JoinOptions {
  /** Cluster URL of any control instance. */
  readonly clusterUrl: string;
  readonly token: string;
  /** File of the membership. */
  readonly path: string;
  readonly hostname: string;
  /** Where control reaches this edge. */
  readonly url: string;
  readonly backends: readonly Backend[];
  readonly capabilities: readonly Capability[];
}

/**
 * Joins the platform and keeps the membership in a file. An edge that joined before shows its certificate and stays the node it was, with a
 * new certificate; one whose file was lost becomes a new node.
 */
export async function joinControl(options: JoinOptions, signal: AbortSignal): Promise<Membership> {
  const before = readMembership(options.path);
  const authority = await pinAuthority(options.clusterUrl, options.token, signal);
  // A membership of another platform proves nothing to this one.
  const known =
    before !== undefined && fingerprint(before.authority) === fingerprint(authority) ? before : undefined;
  await using client = new ClusterClient({
    authority,
    ...(known === undefined ? {} : { privateKey: known.privateKey, certificate: known.certificate }),
  });
  const { privateKey, request } = await createRequest("edge");
  const body: JoinNode = {
    token: options.token,
    ...(known === undefined ? {} : { nodeId: known.nodeId }),
    hostname: options.hostname,
    url: options.url,
    backends: [...options.backends],
    capabilities: [...options.capabilities],
    csr: request,
  };
  const answer = await client.post(`${options.clusterUrl}${routes.joinNode.path}`, body, signal);
  const joined = parse(JoinedNode, answer, "answer to a join");
  if (fingerprint(joined.authority) !== fingerprint(authority))
    throw new Error("the control instance answered with another authority than it showed");
  const membership: Membership = {
    nodeId: joined.nodeId,
    privateKey,
    certificate: joined.certificate,
    authority,
    claimKey: joined.claimKey,
    controls: joined.controls,
  };
  writeMembership(options.path, membership);
  return membership;
}
