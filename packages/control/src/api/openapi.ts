import {
  BatchCreate,
  BatchLine,
  CapabilityList,
  Command,
  CommandList,
  CreatedKey,
  CreateKey,
  CreateProject,
  CreateSandbox,
  Exec,
  ExecResult,
  FileListing,
  FileStat,
  Heartbeat,
  HeartbeatAnswer,
  ImportLayer,
  JoinedNode,
  JoinNode,
  JoinToken,
  KeyList,
  LayerList,
  LayerManifest,
  ListFiles,
  ListSandboxes,
  NodeList,
  Project,
  ProjectList,
  ReadFile,
  ReadOutput,
  RemoveFile,
  type Route,
  routes,
  Sandbox,
  SandboxPage,
  SetLifetime,
  SignalCommand,
  StartCommand,
  StatFile,
  WireErrorBody,
  WriteFile,
} from "@dsec/contracts";
import type { TSchema } from "typebox";

interface Shapes {
  readonly query?: TSchema;
  readonly body?: TSchema;
  readonly answer?: TSchema;
}

/** What each route takes and gives; routes with bytes or without content have no shape. */
const shapes: Readonly<Record<keyof typeof routes, Shapes>> = {
  createSandbox: { body: CreateSandbox, answer: Sandbox },
  batchCreate: { body: BatchCreate, answer: BatchLine },
  listSandboxes: { query: ListSandboxes, answer: SandboxPage },
  getSandbox: { answer: Sandbox },
  deleteSandbox: { answer: Sandbox },
  setLifetime: { body: SetLifetime, answer: Sandbox },
  startCommand: { body: StartCommand, answer: Command },
  listCommands: { answer: CommandList },
  getCommand: { answer: Command },
  readOutput: { query: ReadOutput },
  signalCommand: { body: SignalCommand },
  exec: { body: Exec, answer: ExecResult },
  readFile: { query: ReadFile },
  writeFile: { query: WriteFile, answer: FileStat },
  removeFile: { query: RemoveFile },
  statFile: { query: StatFile, answer: FileStat },
  listFiles: { query: ListFiles, answer: FileListing },
  eventStream: {},
  capabilities: { answer: CapabilityList },
  listLayers: { answer: LayerList },
  importLayer: { body: ImportLayer, answer: LayerManifest },
  listProjects: { answer: ProjectList },
  createProject: { body: CreateProject, answer: Project },
  listKeys: { answer: KeyList },
  createKey: { body: CreateKey, answer: CreatedKey },
  revokeKey: {},
  listNodes: { answer: NodeList },
  createJoinToken: { answer: JoinToken },
  joinNode: { body: JoinNode, answer: JoinedNode },
  heartbeat: { body: Heartbeat, answer: HeartbeatAnswer },
  health: {},
  ready: {},
  metrics: {},
  openapi: {},
};

/** The OpenAPI 3.1 description of the public API, made from the schemas that validate it. */
export function openApiDocument(): object {
  const paths: Record<string, Record<string, object>> = {};
  for (const [name, route] of Object.entries(routes) as [keyof typeof routes, Route][]) {
    const path = route.path.replaceAll(/\/:([a-z]+)/g, "/{$1}");
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: operation(name, route, shapes[name]) };
  }
  return {
    openapi: "3.1.0",
    info: { title: "DSec", version: "1" },
    paths,
    components: { securitySchemes: { key: { type: "http", scheme: "bearer" } } },
  };
}

function operation(name: string, route: Route, shape: Shapes): object {
  const parameters = [...pathParameters(route.path), ...queryParameters(shape.query)];
  return {
    operationId: name,
    parameters,
    ...(shape.body === undefined ? {} : { requestBody: { required: true, content: json(shape.body) } }),
    responses: {
      default: { description: "An error", content: json(WireErrorBody) },
      "2XX": {
        description: "Success",
        ...(shape.answer === undefined ? {} : { content: json(shape.answer) }),
      },
    },
    ...(route.auth === "member" || route.auth === "admin" ? { security: [{ key: [] }] } : {}),
  };
}

function json(schema: TSchema): object {
  return { "application/json": { schema } };
}

function pathParameters(path: string): object[] {
  return [...path.matchAll(/\/:([a-z]+)/g)].map(([, name]) => ({
    name,
    in: "path",
    required: true,
    schema: { type: "string" },
  }));
}

function queryParameters(query: TSchema | undefined): object[] {
  if (query === undefined) return [];
  const { properties, required } = query as unknown as {
    properties: Record<string, TSchema>;
    required?: string[];
  };
  return Object.entries(properties).map(([name, schema]) => ({
    name,
    in: "query",
    required: required?.includes(name) ?? false,
    schema,
  }));
}
