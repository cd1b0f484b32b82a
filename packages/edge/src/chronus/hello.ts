import { type Static, Type } from "typebox";
import { Value } from "typebox/value";
import { WireError } from "./frames.ts";

const versions = { min: 1, max: 1 } as const;

/** What the edge says first on every connection. */
export const ourHello = { protocol: versions, role: "edge" } as const;

/** Keys that this version does not know are ignored, so that an old init serves a new edge and the other way round. */
const HelloFrame = Type.Object({
  protocol: Type.Object({
    min: Type.Integer({ minimum: 1, maximum: 65_535 }),
    max: Type.Integer({ minimum: 1, maximum: 65_535 }),
  }),
  role: Type.Union([Type.Literal("spawner"), Type.Literal("init"), Type.Literal("guest")]),
  bootId: Type.String({ pattern: "^[0-9a-f]{32}$" }),
  pid: Type.Optional(Type.Union([Type.Integer({ minimum: 1 }), Type.Null()])),
  sandboxId: Type.Optional(Type.Union([Type.String({ maxLength: 64 }), Type.Null()])),
});

export interface Hello {
  /** The highest version that both sides have. */
  readonly version: number;
  readonly role: Static<typeof HelloFrame>["role"];
  /** Random per process of the peer. */
  readonly bootId: string;
  readonly sandboxId: string | undefined;
}

/** The peer's HELLO with the version that is used. Throws WireError when it is malformed or no version is in common. */
export function negotiate(frame: Record<string, unknown>): Hello {
  if (!Value.Check(HelloFrame, frame)) throw new WireError("HELLO is malformed");
  const version = Math.min(frame.protocol.max, versions.max);
  if (version < Math.max(frame.protocol.min, versions.min)) {
    throw new WireError(`No protocol version in common with ${frame.protocol.min} to ${frame.protocol.max}`);
  }
  return { version, role: frame.role, bootId: frame.bootId, sandboxId: frame.sandboxId ?? undefined };
}
