// The Debian packages that the platform needs, each with its reason. The one list: set-up reads it.

/**
 * @typedef {{ name: string, reason: string }} DebianPackage
 * @type {readonly DebianPackage[]}
 */
export const debianPackages = [
  { name: "mmdebstrap", reason: "builds the default base layer from Debian packages" },
  { name: "erofs-utils", reason: "packs a directory as a layer (mkfs.erofs)" },
  { name: "e2fsprogs", reason: "spreads the sandboxes' directories over an ext4 file system (chattr)" },
  { name: "git", reason: "the tasks' repositories; the checks read the list of files" },
  { name: "gcc", reason: "links chronus" },
  { name: "libc6-dev", reason: "links chronus" },
  { name: "util-linux", reason: "unshare, nsenter and mount for the host check and the leak check" },
];
