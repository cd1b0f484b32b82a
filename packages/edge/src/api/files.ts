import { Readable } from "node:stream";
import { ListFiles, ReadFile, RemoveFile, routes, StatFile, WriteFile } from "@dsec/contracts";
import { parseQuery } from "@dsec/kit";
import type { FastifyInstance } from "fastify";
import { addClaimedRoute } from "./claimed-route.ts";
import type { EdgeContext } from "./context.ts";
import { sandboxOf } from "./sandboxes.ts";

/** Files. Contents are streams both ways and have no bound but the sandbox's disk; memory stays flat. */
export async function addFileRoutes(app: FastifyInstance, context: EdgeContext): Promise<void> {
  const { sandboxes } = context;
  addClaimedRoute(app, context, { route: routes.readFile }, async ({ claim, request, reply }) => {
    const { path, user, offset, length } = parseQuery(ReadFile, request.query);
    const sandbox = sandboxes.live(claim, sandboxOf(request));
    const busy = sandbox.activity.hold();
    reply.raw.once("close", () => busy[Symbol.dispose]());
    const file = await sandbox.files.read({ path, user, offset, length });
    return await reply
      .type("application/octet-stream")
      .send(Readable.from(file.chunks, { objectMode: false }));
  });
  addClaimedRoute(app, context, { route: routes.statFile }, async ({ claim, request }) => {
    const { path, user, follow } = parseQuery(StatFile, request.query);
    const sandbox = sandboxes.live(claim, sandboxOf(request));
    using _busy = sandbox.activity.hold();
    return await sandbox.files.stat({ path, user, follow });
  });
  addClaimedRoute(app, context, { route: routes.listFiles }, async ({ claim, request }) => {
    const { path, user, entriesMax } = parseQuery(ListFiles, request.query);
    const sandbox = sandboxes.live(claim, sandboxOf(request));
    using _busy = sandbox.activity.hold();
    return await sandbox.files.list({ path, user, entriesMax });
  });
  addClaimedRoute(app, context, { route: routes.removeFile }, async ({ claim, request, reply }) => {
    const { path, user, recursive } = parseQuery(RemoveFile, request.query);
    const sandbox = sandboxes.live(claim, sandboxOf(request));
    using _busy = sandbox.activity.hold();
    await sandbox.files.remove({ path, user, recursive });
    return await reply.code(204).send();
  });
  await app.register(async (scope) => {
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser("*", (_request, payload, done) => done(null, payload));
    addClaimedRoute(scope, context, { route: routes.writeFile }, async ({ claim, request }) => {
      const { path, user, mode, makeParents } = parseQuery(WriteFile, request.query);
      const sandbox = sandboxes.live(claim, sandboxOf(request));
      using _busy = sandbox.activity.hold();
      const content = (request.body as Readable | undefined) ?? Readable.from([]);
      return await sandbox.files.write({ path, user, mode, makeParents }, content);
    });
  });
}
