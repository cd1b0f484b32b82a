// An edge's node in a process of its own, for a test to kill: creates what it is told, says so in JSON lines, and goes on.

import { startNode } from "@dsec/edge/node";
import { createLog } from "@dsec/kit";
import { asker, type NodeSetup, nodeConfig, sandboxRequest, startRequest } from "./node-setup.ts";

const [setupText = "{}", mode = "hold"] = process.argv.slice(2);
const setup = JSON.parse(setupText) as NodeSetup;
const log = createLog("edge", { level: "warn" });
const startOptions = { log, progress: () => undefined, signal: new AbortController().signal };
const node = await startNode(nodeConfig(setup), setup.nodeId, startOptions);

function say(line: object): void {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

if (mode === "hold") {
  for (let i = 0; i < 5; i++) {
    const { id } = await node.sandboxes.create(asker, sandboxRequest, `key-${i}`);
    const { commands } = node.sandboxes.live(asker, id);
    const counter = startRequest("i=0; while true; do i=$((i+1)); echo $i > /root/counter; sleep 0.02; done");
    await commands.start({ ...counter, actionId: "counter" });
    const marker = startRequest(`echo ${id} > /root/marker`);
    const { commandId } = await commands.start({ ...marker, actionId: "marker" });
    await commands.outcome(commandId);
    await commands.start({ ...startRequest("echo once >> /root/once; sleep 1; exit 9"), actionId: "once" });
    say({ id });
  }
  say({ ready: true });
} else {
  say({ ready: true });
  // Until killed: every step of creation, command and end is under way somewhere.
  const loop = async (): Promise<never> => {
    for (;;) {
      const { id } = await node.sandboxes.create(asker, sandboxRequest, undefined);
      const { commands } = node.sandboxes.live(asker, id);
      const { commandId } = await commands.start(startRequest("sleep 0.01"));
      await commands.outcome(commandId);
      await node.sandboxes.remove(asker, id);
    }
  };
  await Promise.all([loop(), loop(), loop(), loop()]);
}
