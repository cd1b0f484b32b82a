import assert from "node:assert/strict";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { connect, createServer, type TLSSocket } from "node:tls";
import { createAuthority, createRequest, fingerprint, type KeyPair, signRequest } from "./tls.ts";

async function member(authority: KeyPair, commonName: string): Promise<KeyPair> {
  const { privateKey, request } = await createRequest(commonName);
  return {
    privateKey,
    certificate: await signRequest(authority, request, { commonName, hosts: ["127.0.0.1", "localhost"] }),
  };
}

test("two members of an authority speak mutual TLS and see each other's names", async () => {
  const authority = await createAuthority();
  const [edge, control] = [await member(authority, "edge abcd"), await member(authority, "control")];
  const server = createServer({
    key: edge.privateKey,
    cert: edge.certificate,
    ca: authority.certificate,
    requestCert: true,
  });
  server.on("secureConnection", (socket) => socket.end(String(socket.getPeerCertificate().subject.CN)));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const client = connect({
    host: "127.0.0.1",
    port: (server.address() as AddressInfo).port,
    ca: authority.certificate,
    key: control.privateKey,
    cert: control.certificate,
  });
  const [seen] = (await once(client, "data")) as [Buffer];
  assert.equal(seen.toString(), "control");
  assert.equal(client.getPeerCertificate().subject.CN, "edge abcd");
  client.destroy();
  server.close();
});

test("a member of another authority is refused", async () => {
  const [ours, theirs] = [await createAuthority(), await createAuthority()];
  const [edge, stranger] = [await member(ours, "edge"), await member(theirs, "control")];
  const server = createServer({
    key: edge.privateKey,
    cert: edge.certificate,
    ca: ours.certificate,
    requestCert: true,
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const refused = once(server, "tlsClientError");
  const client: TLSSocket = connect({
    host: "127.0.0.1",
    port: (server.address() as AddressInfo).port,
    ca: ours.certificate,
    key: stranger.privateKey,
    cert: stranger.certificate,
  });
  client.on("error", () => undefined);
  await refused;
  client.destroy();
  server.close();
});

test("fingerprint() is stable for a certificate and differs between authorities", async () => {
  const [one, two] = [await createAuthority(), await createAuthority()];
  assert.match(fingerprint(one.certificate), /^[0-9a-f]{64}$/);
  assert.equal(fingerprint(one.certificate), fingerprint(one.certificate));
  assert.notEqual(fingerprint(one.certificate), fingerprint(two.certificate));
});

test("signRequest() refuses a request that its key did not sign", async () => {
  const authority = await createAuthority();
  const { request } = await createRequest("edge");
  const lines = request.split("\n");
  const der = Buffer.from(lines.slice(1, -1).join(""), "base64");
  der[der.length - 3] = (der[der.length - 3] ?? 0) ^ 1;
  const broken = [lines[0], der.toString("base64"), lines.at(-1)].join("\n");
  await assert.rejects(signRequest(authority, broken, { commonName: "edge", hosts: [] }));
});
