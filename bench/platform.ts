/** A sandbox of the platform that is measured; disposing stops it. */
export interface PlatformSandbox extends AsyncDisposable {
  /** Runs `true` to its end. Throws when it does not end with 0. */
  runTrue(signal: AbortSignal): Promise<void>;
}

/** The platform that is measured, through its public API. */
export interface Platform extends AsyncDisposable {
  create(signal: AbortSignal): Promise<PlatformSandbox>;
}

export function openPlatform(_signal: AbortSignal): Promise<Platform> {
  return Promise.reject(new Error("the SDK is not there yet"));
}
