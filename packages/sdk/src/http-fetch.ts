import type { HttpAnswer, HttpSend } from "./http.ts";

/** Exchanges by the standard fetch: for every runtime. */
export function sendByFetch(fetchOf: typeof fetch): HttpSend {
  return async ({ method, url, headers, body, signal }) => {
    const init = {
      method,
      headers,
      signal,
      ...(body === undefined ? {} : { body }),
      ...(body instanceof ReadableStream ? { duplex: "half" } : {}),
    };
    return answerOf(await fetchOf(url, init as RequestInit));
  };
}

function answerOf(response: Response): HttpAnswer {
  return {
    status: response.status,
    header: (name) => response.headers.get(name) ?? undefined,
    text: async () => await response.text(),
    bytes: async () => new Uint8Array(await response.arrayBuffer()),
    chunks: () => response.body ?? noChunks(),
    async discard() {
      await response.body?.cancel();
    },
  };
}

async function* noChunks(): AsyncGenerator<Uint8Array> {}
