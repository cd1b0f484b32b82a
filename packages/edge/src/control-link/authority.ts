import { once } from "node:events";
import { connect, type DetailedPeerCertificate } from "node:tls";
import { PlatformError } from "@dsec/contracts";
import { fingerprint } from "@dsec/kit";

const connectTimeoutMs = 5_000;
const chainLengthMax = 4;

/**
 * The authority's certificate (PEM), as the control instance at `clusterUrl` shows it, when it is the one that the token names by its
 * fingerprint. Nothing is sent to a stranger: the token's secret goes only over a connection that this authority vouches for.
 */
export async function pinAuthority(clusterUrl: string, token: string, signal: AbortSignal): Promise<string> {
  const wanted = /^dj_([0-9a-f]{64})_/.exec(token)?.[1];
  if (wanted === undefined)
    throw new PlatformError(
      "invalid_request",
      "Cannot join: the token is not of the form dj_<fingerprint>_<secret>",
    );
  const { hostname, port } = new URL(clusterUrl);
  // The chain is judged below, by the fingerprint; no data is exchanged on this connection.
  const socket = connect({
    host: hostname,
    port: Number(port),
    rejectUnauthorized: false,
    minVersion: "TLSv1.3",
  });
  try {
    await once(socket, "secureConnect", {
      signal: AbortSignal.any([signal, AbortSignal.timeout(connectTimeoutMs)]),
    });
    const found = chain(socket.getPeerCertificate(true))
      .map(pemOf)
      .find((pem) => fingerprint(pem) === wanted);
    if (found === undefined) {
      throw new PlatformError(
        "unauthenticated",
        `Cannot join: ${clusterUrl} is not of the platform that made the token`,
      );
    }
    return found;
  } catch (cause) {
    if (cause instanceof PlatformError) throw cause;
    throw new PlatformError("unavailable", `Cannot join: ${clusterUrl} does not answer`, {
      cause,
      retryAfterMs: 1_000,
    });
  } finally {
    socket.destroy();
  }
}

function chain(leaf: DetailedPeerCertificate): DetailedPeerCertificate[] {
  const certificates = [leaf];
  for (
    let next = leaf.issuerCertificate;
    next !== undefined && certificates.length < chainLengthMax;
    next = next.issuerCertificate
  ) {
    certificates.push(next);
  }
  return certificates;
}

function pemOf(certificate: DetailedPeerCertificate): string {
  const lines = certificate.raw.toString("base64").match(/.{1,64}/g) ?? [];
  return `-----BEGIN CERTIFICATE-----\n${lines.join("\n")}\n-----END CERTIFICATE-----\n`;
}
