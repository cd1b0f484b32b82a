import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { OutputCollector } from "./output-collector.ts";

test("inline output is the first bytes, as text when they are text, and says when something is missing", () => {
  fc.assert(
    fc.property(
      fc.array(
        fc.oneof(
          fc.string({ unit: "grapheme" }).map((text) => Buffer.from(text)),
          fc.uint8Array().map((bytes) => Buffer.from(bytes)),
        ),
      ),
      fc.integer({ min: 0, max: 200 }),
      (chunks, bytesMax) => {
        const collector = new OutputCollector(bytesMax);
        for (const chunk of chunks) collector.add(1, Buffer.from(chunk));
        const whole = Buffer.concat(chunks.map((chunk) => Buffer.from(chunk)));
        const { encoding, data, truncated } = collector.inline(1);
        const bytes = Buffer.from(data, encoding);
        assert.equal(truncated, whole.length > bytesMax);
        assert.deepEqual(bytes, whole.subarray(0, bytes.length));
        assert.ok(bytes.length >= Math.min(whole.length, bytesMax) - 3);
        assert.deepEqual(collector.inline(2), { encoding: "utf8", data: "", truncated: false });
      },
    ),
  );
});

test("text that is cut inside a character stays text", () => {
  for (let bytesMax = 1; bytesMax < 12; bytesMax++) {
    const collector = new OutputCollector(bytesMax);
    collector.add(1, Buffer.from("aé€😀xyz"));
    assert.equal(collector.inline(1).encoding, "utf8");
  }
});
