import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { test } from "node:test";
import { claimLifetimeMs } from "@dsec/contracts";
import { ClaimSigner, ClaimVerifier } from "./claims.ts";

const pair = generateKeyPairSync("ed25519");
const subject = { project: "prdefault", principal: "kyone", admin: false };

test("ClaimVerifier accepts what ClaimSigner made, until it expires", () => {
  const header = new ClaimSigner(pair.privateKey).header(subject, 1_000);
  const verifier = new ClaimVerifier(pair.publicKey);
  assert.deepEqual(
    { ...verifier.verify(header, 2_000) },
    { ...subject, expiresAtMs: 1_000 + claimLifetimeMs },
  );
  assert.throws(() => verifier.verify(header, 1_000 + claimLifetimeMs), { code: "unauthenticated" });
});

test("ClaimVerifier refuses a changed body, another key, no claim and a claim from the far future", () => {
  const header = new ClaimSigner(pair.privateKey).header(subject, 1_000);
  const [body, signature] = header.split(".");
  const forged = Buffer.from(JSON.stringify({ ...subject, admin: true, expiresAtMs: 60_000 })).toString(
    "base64url",
  );
  const stranger = new ClaimSigner(generateKeyPairSync("ed25519").privateKey).header(subject, 1_000);
  const verifier = new ClaimVerifier(pair.publicKey);
  for (const wrong of [undefined, "", "a.b.c", body, `${forged}.${signature}`, stranger, "x".repeat(5_000)]) {
    assert.throws(() => verifier.verify(wrong, 2_000), { code: "unauthenticated" });
  }
  const early = new ClaimSigner(pair.privateKey).header(subject, 10_000_000);
  assert.throws(() => verifier.verify(early, 1_000), { code: "unauthenticated" });
});

test("ClaimSigner signs once for calls of the same subject that come close together", () => {
  const signer = new ClaimSigner(pair.privateKey);
  assert.equal(signer.header(subject, 1_000), signer.header(subject, 2_000));
  assert.notEqual(signer.header(subject, 1_000), signer.header({ ...subject, project: "prother" }, 1_000));
});
