import {
  BatchCreate,
  type BatchLine,
  CreateSandbox,
  headers,
  isSandboxId,
  ListSandboxes,
  limits,
  nodeOf,
  PlatformError,
  randomBase32,
  routes,
} from "@dsec/contracts";
import { addRoute, parseQuery, writeLine } from "@dsec/kit";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { createBatch } from "../app/batch.ts";
import { type Caller, callerOf } from "./caller.ts";
import type { ControlContext } from "./context.ts";

const keyPattern = new RegExp(`^[A-Za-z0-9._:-]{1,${limits.idempotencyKeyLengthMax}}$`);

/** Creation, alone and in batches, and lists over all nodes. */
export function addSandboxRoutes(app: FastifyInstance, context: ControlContext): void {
  addRoute(
    app,
    routes.createSandbox,
    { body: CreateSandbox, summary: "Create a sandbox" },
    async (request, reply) => {
      const caller = callerOf(request, reply);
      try {
        const sandbox = await context.creator.create({
          ...caller,
          request: request.body as CreateSandbox,
          key: keyOf(request),
        });
        context.metrics.created("created");
        return await reply.code(201).send(sandbox);
      } catch (error) {
        context.metrics.created(error instanceof PlatformError ? error.code : "internal");
        throw error;
      }
    },
  );
  addRoute(
    app,
    routes.listSandboxes,
    { summary: "List sandboxes of the project" },
    async (request, reply) => {
      const caller = callerOf(request, reply);
      return await context.fleet.listSandboxes(caller, parseQuery(ListSandboxes, request.query));
    },
  );
  addRoute(
    app,
    routes.batchCreate,
    { body: BatchCreate, summary: "Create many sandboxes; NDJSON" },
    async (request, reply) => {
      const caller = callerOf(request, reply);
      const hasKey = request.headers[headers.idempotencyKey] !== undefined;
      const key = hasKey ? keyOf(request) : undefined;
      reply.hijack();
      const stream = reply.raw;
      stream.writeHead(200, { "content-type": "application/x-ndjson", [headers.requestId]: request.id });
      stream.flushHeaders();
      try {
        const healthy = context.watcher
          .ids()
          .filter((id) => context.watcher.healthOf(id) === "healthy").length;
        const options = {
          creator: context.creator,
          key,
          concurrency: Math.max(1, healthy) * context.batchPerNode,
          remove: async (sandbox: { readonly id: string }) => await remove(context, caller, sandbox.id),
        };
        await createBatch(request.body as BatchCreate, caller, options, async (line: BatchLine) => {
          context.metrics.created("sandbox" in line ? "created" : line.error.code);
          await writeLine(stream, line, caller.signal);
        });
        stream.end();
      } catch (error) {
        // The status has been sent: an answer cut short is the only way left to tell.
        stream.destroy(error instanceof Error ? error : undefined);
      }
    },
  );
}

/** The caller's key, or a new one. Only a key that its sender calls a first attempt is known to be unused. */
function keyOf(request: FastifyRequest): { readonly text: string; readonly fresh: boolean } {
  const given = request.headers[headers.idempotencyKey];
  if (given === undefined) return { text: `auto-${randomBase32(24)}`, fresh: true };
  if (typeof given !== "string" || !keyPattern.test(given)) {
    throw new PlatformError(
      "invalid_request",
      `Wrong idempotency key: 1 to ${limits.idempotencyKeyLengthMax} of A-Z a-z 0-9 . _ : -`,
    );
  }
  return { text: given, fresh: request.headers[headers.attempt] === "1" };
}

async function remove(context: ControlContext, caller: Caller, id: string): Promise<void> {
  if (!isSandboxId(id)) return;
  await context.edges.find(nodeOf(id))?.json({
    method: "DELETE",
    path: `/v1/sandboxes/${id}`,
    principal: caller.principal,
    requestId: caller.requestId,
    signal: AbortSignal.timeout(removeTimeoutMs),
  });
}

const removeTimeoutMs = 30_000;
