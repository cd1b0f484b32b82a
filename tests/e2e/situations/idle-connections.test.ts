// Calls and streams that are silent for longer than proxies between client and platform keep connections.
import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { test } from "node:test";
import { DsecClient } from "@dsec/sdk";
import { reasonToSkip, startPlatform } from "@dsec/testkit";
import { sized } from "../../acceptance/report.ts";

const silentSeconds = 130;
const proxyIdleMsMax = 60_000;

test("130 s of silence survive a proxy that gives up after 60 s", {
  skip:
    reasonToSkip() ||
    sized<string | false>({
      short: `takes ${silentSeconds} s: runs at full length`,
      full: false,
      soak: false,
    }),
  timeout: 400_000,
}, async (t) => {
  await using platform = await startPlatform({ signal: t.signal });
  await using proxy = await startProxy(new URL(platform.url));
  await using client = new DsecClient({ url: proxy.url, key: platform.key });
  await using sandbox = await client.sandboxes.create({ memoryMib: 128 });
  const text = `echo begin; echo once >>/root/$0; sleep ${silentSeconds}; echo end`;
  const [waited, streamed] = await Promise.all([
    sandbox.exec(["sh", "-c", text, "waited"]),
    (async () => {
      const command = await sandbox.start(["sh", "-c", text, "streamed"]);
      const output = await command.stdout.text();
      return { output, exitCode: (await command.outcome()).exitCode };
    })(),
  ]);
  assert.equal(waited.stdout, "begin\nend\n");
  assert.deepEqual(streamed, { output: "begin\nend\n", exitCode: 0 });
  assert.equal((await sandbox.exec("cat /root/waited /root/streamed")).stdout, "once\nonce\n");
});

/** A proxy of TCP connections that cuts those on which neither side says anything for too long. */
async function startProxy({ hostname, port }: URL): Promise<AsyncDisposable & { readonly url: string }> {
  const sockets = new Set<Socket>();
  const server = createServer((inner) => {
    const outer = connect(Number(port), hostname);
    for (const [socket, peer] of [
      [inner, outer],
      [outer, inner],
    ] as const) {
      sockets.add(socket);
      socket.setTimeout(proxyIdleMsMax, () => socket.destroy());
      socket.on("data", () => peer.setTimeout(proxyIdleMsMax));
      socket.on("error", () => peer.destroy());
      socket.on("close", () => {
        sockets.delete(socket);
        peer.destroy();
      });
      socket.pipe(peer);
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${address.port}`,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}
