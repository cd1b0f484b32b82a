import assert from "node:assert/strict";
import { test } from "node:test";
import { newKeyId } from "@dsec/contracts";
import fc from "fast-check";
import { claimOf, decide, type Principal } from "./decide.ts";
import { hashSecret, isSecret, keyText, newSecret, parseKeyText } from "./secrets.ts";

const principal = (role: Principal["role"]): Principal => ({ keyId: "ky", project: "pr", role });

test("decide() lets admins do all but a node's calls, and members what is for members", () => {
  for (const [role, auth, allowed] of [
    ["admin", "none", true],
    ["admin", "member", true],
    ["admin", "admin", true],
    ["admin", "node", false],
    ["member", "none", true],
    ["member", "member", true],
    ["member", "admin", false],
    ["member", "node", false],
  ] as const) {
    assert.equal(decide(principal(role), auth), allowed, `${role} ${auth}`);
  }
});

test("claimOf() vouches for the key's project and role", () => {
  assert.deepEqual(claimOf(principal("member")), { project: "pr", principal: "ky", admin: false });
  assert.equal(claimOf(principal("admin")).admin, true);
});

test("parseKeyText() reads what keyText() wrote, and nothing else", () => {
  const id = newKeyId();
  const secret = newSecret();
  assert.match(secret, /^[A-Za-z0-9_-]{43}$/);
  assert.deepEqual(parseKeyText(keyText(id, secret)), { id, secret });
  const text = keyText(id, secret);
  for (const wrong of [
    "",
    text.slice(1),
    text.slice(0, -1),
    `${text}a`,
    text.toUpperCase(),
    ` ${text}`,
    `${text}\n`,
  ])
    assert.equal(parseKeyText(wrong), undefined);
  fc.assert(
    fc.property(fc.string(), (other) => {
      assert.equal(parseKeyText(other), undefined);
    }),
  );
});

test("isSecret() accepts the secret of the hash alone", () => {
  const secret = newSecret();
  assert.equal(isSecret(secret, hashSecret(secret)), true);
  assert.equal(isSecret(newSecret(), hashSecret(secret)), false);
});
