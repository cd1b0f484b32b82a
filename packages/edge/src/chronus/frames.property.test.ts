import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { encodeData, encodeFrame, FrameDecoder, frameTypes, payloadBytesMax, WireError } from "./frames.ts";

const frameArbitrary = fc.record({
  type: fc.constantFrom(...Object.values(frameTypes)),
  channel: fc.integer({ min: 0, max: 0xffff_ffff }),
  payload: fc.uint8Array({ maxLength: 300 }),
});

function cut(bytes: Buffer, sizes: readonly number[]): Buffer[] {
  const pieces: Buffer[] = [];
  let at = 0;
  for (let i = 0; at < bytes.length; i++) {
    const size = sizes[i % sizes.length] ?? 1;
    pieces.push(bytes.subarray(at, at + size));
    at += size;
  }
  return pieces;
}

test("FrameDecoder gives back what was encoded, however the bytes are cut", () => {
  fc.assert(
    fc.property(
      fc.array(frameArbitrary, { maxLength: 20 }),
      fc.array(fc.integer({ min: 1, max: 97 }), { minLength: 1, maxLength: 10 }),
      (frames, sizes) => {
        const bytes = Buffer.concat(frames.map((f) => encodeFrame(f.type, f.channel, f.payload)));
        const decoder = new FrameDecoder();
        const decoded = cut(bytes, sizes).flatMap((piece) => decoder.push(piece));
        assert.deepEqual(
          decoded.map((f) => ({ type: f.type, channel: f.channel, payload: new Uint8Array(f.payload) })),
          frames.map((f) => ({ ...f, payload: new Uint8Array(f.payload) })),
        );
      },
    ),
  );
});

test("FrameDecoder answers any bytes with frames or WireError and nothing else", () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 64 }), { maxLength: 20 }), (chunks) => {
      const decoder = new FrameDecoder();
      try {
        for (const chunk of chunks) decoder.push(Buffer.from(chunk));
      } catch (error) {
        assert.ok(error instanceof WireError);
      }
    }),
  );
});

test("FrameDecoder refuses lengths outside of the bounds before it has the payload", () => {
  for (const length of [0, 4, payloadBytesMax + 6, 0xffff_ffff]) {
    const header = Buffer.alloc(9);
    header.writeUInt32LE(length, 0);
    header.writeUInt8(frameTypes.data, 4);
    assert.throws(() => new FrameDecoder().push(header), WireError);
  }
});

test("a frame of the largest size passes byte by byte boundaries", () => {
  const payload = Buffer.alloc(payloadBytesMax, 7);
  const decoder = new FrameDecoder();
  const frames = cut(encodeFrame(frameTypes.data, 3, payload), [65_536]).flatMap((piece) =>
    decoder.push(piece),
  );
  assert.equal(frames.length, 1);
  assert.deepEqual(frames[0]?.payload, payload);
  assert.throws(() => encodeFrame(frameTypes.data, 3, Buffer.alloc(payloadBytesMax + 1)), WireError);
  assert.throws(() => encodeData(1, 1, Buffer.alloc(0)), WireError);
});
