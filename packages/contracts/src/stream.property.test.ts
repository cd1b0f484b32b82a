import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { decodeOutputChunk, encodeOutputChunk, outputChunkBytesMax, outputHeaderBytes } from "./stream.ts";

test("decodeOutputChunk() gives back what encodeOutputChunk() took", () => {
  fc.assert(
    fc.property(
      fc.record({
        subscription: fc.integer({ min: 1, max: 0xffff_ffff }),
        stream: fc.constantFrom(1 as const, 2 as const),
        last: fc.boolean(),
        offset: fc.maxSafeNat(),
        bytes: fc.uint8Array({ maxLength: 4_096 }),
      }),
      (chunk) => {
        assert.deepEqual(decodeOutputChunk(encodeOutputChunk(chunk)), { ...chunk });
      },
    ),
  );
});

test("decodeOutputChunk() never throws and refuses what encodeOutputChunk() cannot make", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 64 }), (message) => {
      const chunk = decodeOutputChunk(message);
      if (chunk !== undefined) assert.deepEqual(encodeOutputChunk(chunk), message);
    }),
  );
});

test("decodeOutputChunk() refuses a message over the bound", () => {
  const bytes = new Uint8Array(outputChunkBytesMax + 1);
  const message = encodeOutputChunk({ subscription: 1, stream: 1, last: false, offset: 0, bytes });
  assert.equal(message.length, outputHeaderBytes + outputChunkBytesMax + 1);
  assert.equal(decodeOutputChunk(message), undefined);
});
