import assert from "node:assert/strict";
import { test } from "node:test";
import { routes } from "@dsec/contracts";
import { openApiDocument } from "./openapi.ts";

interface Operation {
  readonly operationId: string;
  readonly parameters: readonly { readonly name: string; readonly in: string }[];
  readonly requestBody?: object;
  readonly security?: object;
}

const document = openApiDocument() as {
  readonly openapi: string;
  readonly paths: Record<string, Record<string, Operation>>;
};

test("openApiDocument() describes every route once, with its parameters and key", () => {
  assert.equal(document.openapi, "3.1.0");
  const operations = Object.values(document.paths).flatMap((path) => Object.values(path));
  assert.deepEqual(
    operations.map(({ operationId }) => operationId).toSorted(byText),
    Object.keys(routes).toSorted(byText),
  );
  for (const [path, methods] of Object.entries(document.paths)) {
    const names = [...path.matchAll(/\{([a-z]+)\}/g)].map(([, name]) => name);
    for (const { parameters } of Object.values(methods)) {
      assert.deepEqual(
        parameters.filter((parameter) => parameter.in === "path").map(({ name }) => name),
        names,
      );
    }
  }
  assert.equal(document.paths["/healthz"]?.["get"]?.security, undefined);
  assert.notEqual(document.paths["/v1/sandboxes"]?.["post"]?.security, undefined);
  assert.notEqual(document.paths["/v1/sandboxes:batch"]?.["post"]?.requestBody, undefined);
});

test("openApiDocument() is plain JSON", () => {
  assert.deepEqual(JSON.parse(JSON.stringify(document)), document);
});

function byText(one: string, two: string): number {
  return one < two ? -1 : 1;
}
