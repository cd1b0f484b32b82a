import { Exec, headers, ReadOutput, routes, SignalCommand, StartCommand } from "@dsec/contracts";
import { parseQuery } from "@dsec/kit";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { readStoredOutput } from "../sandbox/stored-output.ts";
import { addClaimedRoute } from "./claimed-route.ts";
import type { EdgeContext } from "./context.ts";
import { sandboxOf } from "./sandboxes.ts";

/** Commands: start, wait, list, output, signal. While a call lasts the sandbox does not idle. */
export function addCommandRoutes(app: FastifyInstance, context: EdgeContext): void {
  const { sandboxes } = context;
  addClaimedRoute(
    app,
    context,
    { route: routes.startCommand, schemas: { body: StartCommand } },
    async ({ claim, request, reply }) => {
      const sandbox = sandboxes.live(claim, sandboxOf(request));
      using _busy = sandbox.activity.hold();
      return await reply.code(202).send(await sandbox.commands.start(request.body as StartCommand));
    },
  );
  addClaimedRoute(
    app,
    context,
    { route: routes.exec, schemas: { body: Exec } },
    async ({ claim, request, signal }) => {
      const sandbox = sandboxes.live(claim, sandboxOf(request));
      using _busy = sandbox.activity.hold();
      return await sandbox.commands.exec(request.body as Exec, signal);
    },
  );
  addClaimedRoute(app, context, { route: routes.listCommands }, async ({ claim, request }) => ({
    items: sandboxes.commandsOf(claim, sandboxOf(request)).list(),
  }));
  addClaimedRoute(app, context, { route: routes.getCommand }, async ({ claim, request }) =>
    sandboxes.commandsOf(claim, sandboxOf(request)).get(commandOf(request)),
  );
  addClaimedRoute(app, context, { route: routes.readOutput }, async ({ claim, request, reply }) => {
    const query = parseQuery(ReadOutput, request.query);
    const sandbox = sandboxes.live(claim, sandboxOf(request));
    using _busy = sandbox.activity.hold();
    const output = await readStoredOutput(sandbox.commands, { ...query, commandId: commandOf(request) });
    return await reply
      .headers({
        [headers.outputOffset]: String(output.offset),
        [headers.outputNextOffset]: String(output.nextOffset),
        [headers.outputDropped]: String(output.dropped),
        [headers.outputEnded]: String(output.hasEnded),
      })
      .type("application/octet-stream")
      .send(output.bytes);
  });
  addClaimedRoute(
    app,
    context,
    { route: routes.signalCommand, schemas: { body: SignalCommand } },
    async ({ claim, request, reply }) => {
      const sandbox = sandboxes.live(claim, sandboxOf(request));
      using _busy = sandbox.activity.hold();
      await sandbox.commands.signal(commandOf(request), request.body as SignalCommand);
      return await reply.code(204).send();
    },
  );
}

function commandOf(request: FastifyRequest): string {
  return (request.params as { readonly command: string }).command;
}
