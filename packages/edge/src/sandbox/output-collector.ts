import { isUtf8 } from "node:buffer";
import type { InlineOutput } from "@dsec/contracts";
import type { OutputStreamNumber } from "../chronus/init-client.ts";

/** Output of one command for an inline answer: the first `bytesMax` bytes of each stream. */
export class OutputCollector {
  readonly #bytesMax: number;
  readonly #streams = { 1: new Collected(), 2: new Collected() };

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  add(stream: OutputStreamNumber, bytes: Buffer): void {
    this.#streams[stream].add(bytes, this.#bytesMax);
  }

  gap(stream: OutputStreamNumber): void {
    this.#streams[stream].truncated = true;
  }

  /** Nothing is stored any more: what there was is missing. */
  expired(): void {
    this.gap(1);
    this.gap(2);
  }

  inline(stream: OutputStreamNumber): InlineOutput {
    return this.#streams[stream].inline();
  }
}

class Collected {
  readonly #chunks: Buffer[] = [];
  #bytes = 0;
  truncated = false;

  add(bytes: Buffer, bytesMax: number): void {
    const kept = bytes.subarray(0, bytesMax - this.#bytes);
    // A copy: the received bytes are a view of a buffer that is used again.
    if (kept.length > 0) this.#chunks.push(Buffer.from(kept));
    this.#bytes += kept.length;
    if (kept.length < bytes.length) this.truncated = true;
  }

  inline(): InlineOutput {
    let bytes: Buffer =
      this.#chunks.length === 1 && this.#chunks[0] !== undefined
        ? this.#chunks[0]
        : Buffer.concat(this.#chunks);
    if (this.truncated) bytes = withoutCutCharacter(bytes);
    const encoding = isUtf8(bytes) ? "utf8" : "base64";
    return { encoding, data: bytes.toString(encoding), truncated: this.truncated };
  }
}

/** Text that was cut inside a character loses that character, so that it stays text. */
function withoutCutCharacter(bytes: Buffer): Buffer {
  for (let cut = 0; cut < 4 && cut < bytes.length; cut++) {
    const byte = bytes[bytes.length - 1 - cut] ?? 0;
    if (byte < 0x80) return bytes;
    if (byte >= 0xc0) {
      const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
      return cut + 1 >= length ? bytes : bytes.subarray(0, bytes.length - 1 - cut);
    }
  }
  return bytes;
}
