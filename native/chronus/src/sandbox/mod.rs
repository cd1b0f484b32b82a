//! Builds the root and the namespaces of a sandbox.
