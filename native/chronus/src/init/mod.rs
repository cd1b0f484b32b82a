//! Init of a sandbox: pid 1, which serves the edge.

use crate::context::SandboxContext;

/// Serves the edge until it is told to stop. Called as pid 1 in the final root and namespaces.
pub fn run(context: SandboxContext) -> ! {
    let _ = rustix::io::write(&context.ready, b"R");
    loop {
        std::thread::park();
    }
}
